"""Reports of the real embedded tiers: six answers on the first screen, a ratio with its interval, and evidence."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Home
from tests.ops.tiny import ANYWAY, VLLM, furnish, vllm
from tests.report.test_html import Page

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
FAST, SUPER = "llamacpp/smollm2-135m-cpu-fast", "llamacpp/smollm2-135m-cpu-superfast"
QUESTIONS = ["What ran", "On what", "What was proved", "What was not", "How sure", "What next"]


def test_two_tiers_are_measured_compared_reported_and_handed_in(
    real_home: Home, free_port: Callable[[], int], tmp_path: Path
) -> None:
    for slug in (FAST, SUPER):
        done = real_home.run("up", slug, "--port", str(free_port()), "--no-measure")
        assert done.returncode == 0, done.stdout + done.stderr
        assert real_home.json("bench", "--quick", "--class", "edit", "--class", "prose")["exit_code"] == 0

    gate = real_home.run("compare", FAST, SUPER, "--json")
    assert gate.returncode == 3  # one boot on each side: a ratio, and no verdict
    found = json.loads(gate.stdout)
    rows = {(row["metric"], row["prompt_class"]): row["ratio"] for row in found["rows"]}
    for kind in ("edit", "prose"):
        ratio = rows["decode_tok_s", kind]
        assert ratio["low"] < ratio["mean"] < ratio["high"]
    assert re.search(r"tier: (slug|drafter)", real_home.run("compare", FAST, SUPER).stdout)

    done = real_home.run("report", FAST, SUPER, "--html", str(tmp_path / "r.html"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "r.html").read_text()
    page = Page(text)
    assert list(page.answers) == QUESTIONS
    assert all(len(words) > 30 for words in page.answers.values()), page.answers
    assert "fast" in page.answers["What ran"]
    assert re.search(r"\d+ CPU", page.answers["On what"])
    assert len(text.encode()) < 1_500_000

    (draft,) = real_home.json("submit", SUPER, "--out", str(tmp_path / "out"))
    taken = real_home.json("evidence", "import", draft["json"], "--source", "this test")
    assert {row["metric"] for row in taken["evidence"]["numbers"]} >= {"decode_narrative", "acceptance_length", "boot"}
    (row,) = [row for row in real_home.json("tiers", "smollm2") if row["slug"] == SUPER]
    assert row["speed"]["counts"] is True
    again = real_home.run("evidence", "import", draft["json"])
    assert (again.returncode, "refused  duplicate" in again.stdout) == (1, True)

    real_home.run("site", "build", "--out", str(tmp_path / "site"))
    index = (tmp_path / "site" / "index.html").read_text()
    assert all(f'href="reports/{slug.replace("/", "-")}.html"' in index for slug in (FAST, SUPER))


def test_when_nothing_boots_the_report_says_what_was_tried(home: Home, free_port: Callable[[], int]) -> None:
    furnish(home, free_port(), free_port(), free_port())
    vllm(home, "oom-weights")
    assert home.run("up", VLLM, *ANYWAY, "--no-measure").returncode == 6
    text = home.run("report").stdout
    assert f"**{VLLM} did not start**" in text
    assert "The GPU is full before the weights are in" in text
    assert "lines of its log</summary>" in text
    assert "1 boot never became a server" in text
    (draft,) = home.json("submit", "last", "--out", str(home.path / "out"))  # a failed boot is worth handing in
    assert json.loads(Path(draft["json"]).read_text())["boots"][0]["failure"]
