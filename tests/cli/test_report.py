"""`redline report` and `redline compare`, as a user types them, on records of their own."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.report.records import check, sample

from redline.cli.compare import compare
from redline.cli.report import report
from redline.errors import InconclusiveError, MissingError, UsageError
from redline.record.run import create_run
from redline.workload.prompts import PromptClass

FAST, SUPER = "llamacpp/smollm2-135m-cpu-fast", "llamacpp/smollm2-135m-cpu-superfast"
Record = Callable[..., str]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("USER", "marta")
    monkeypatch.chdir(tmp_path)
    runs_dir = tmp_path / "state" / "redline" / "runs"

    def make(slug: str = FAST, rate: float = 80.0, server: str = "s1", message: str = "fine") -> str:
        with create_run(
            runs_dir, "bench", url="http://127.0.0.1:1", slug=slug, server_id=server, engine="llamacpp"
        ) as run:
            run.append(check("chat.basic", message=message))
            for index in range(4):
                run.append(sample(PromptClass.PROSE, index, rate + index))
            run.finish("complete", 0, "done")
        return run.run_id

    return make


def call(command: click.Command, *arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)


def test_markdown_is_the_default(record: Record) -> None:
    record()
    output = call(report, "last").output
    assert output.startswith(f"## redline: {FAST}\n")
    assert "**What was proved** 1 of 1 applicable checks passed: basic. It decodes prose at 81.5 tok/s" in output


def test_a_page_is_written_and_said(record: Record, tmp_path: Path) -> None:
    record()
    output = call(report, "last", "--html", str(tmp_path / "r.html")).output
    assert "r.html" in output
    assert "data-answer" in (tmp_path / "r.html").read_text()


def test_json_is_the_model(record: Record) -> None:
    record()
    found = json.loads(call(report, "last", "--json").output)
    assert found["subjects"][0]["speeds"][0]["prompt_class"] == "prose"
    assert found["answers"]["what_next"]["commands"]


def test_a_row_for_a_table(record: Record) -> None:
    record()
    assert call(report, "last", "--row").output.splitlines()[2].startswith(f"| {FAST} |")


def test_a_slug_means_all_its_runs(record: Record) -> None:
    for server in ("s1", "s2", "s3"):
        record(server=server)
    found = json.loads(call(report, FAST, "--json").output)
    assert found["subjects"][0]["speeds"][0]["boots"] == 3


def test_names_are_taken_out_unless_asked(record: Record) -> None:
    record(message="ran for marta")
    assert "marta" not in call(report, "last").output
    assert "marta" in call(report, "last", "--no-redact").output
    changes = call(report, "last", "--preview").output.splitlines()
    assert any(line.startswith("-") and "marta" in line for line in changes)
    assert not any(line.startswith("+") and "marta" in line for line in changes)


def test_the_rig_alone_is_a_report(record: Record) -> None:
    output = call(report).output
    assert output.startswith("## redline: this rig\n")
    assert "### Environment" in output


def test_an_unknown_run_is_refused(record: Record) -> None:
    record()
    with pytest.raises(UsageError, match="There is no run 'zzz'"):
        call(report, "zzz")


def test_an_unreadable_run_is_explained(record: Record, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "redline" / "runs" / record()
    (folder / "manifest.json").write_text("{")
    with pytest.raises(MissingError, match="torn"):
        call(report, folder.name)


def test_preview_and_no_redact_exclude_each_other(record: Record) -> None:
    with pytest.raises(UsageError):
        call(report, "--preview", "--no-redact")


@pytest.mark.parametrize(("rate", "code", "word"), [(160.0, 0, "B is faster"), (40.0, 1, "B is slower")])
def test_compare_is_a_gate(record: Record, rate: float, code: int, word: str) -> None:
    for boot in range(3):
        record(FAST, 80.0 + boot / 10, f"a{boot}")
        record(SUPER, rate + boot / 10, f"b{boot}")
    found = call(compare, FAST, SUPER)
    assert word in found.output
    assert found.return_value == code


@pytest.mark.parametrize("seed", range(8))
def test_two_sets_of_the_same_are_never_called_faster(record: Record, seed: int) -> None:
    """Seeded A/A: boots of one server scatter by 2 %, whichever set they are put in."""
    dice = random.Random(seed)
    sets = [[record(FAST, 80.0 * dice.gauss(1, 0.02), f"{arm}{boot}") for boot in range(4)] for arm in "ab"]
    found = json.loads(call(compare, *(",".join(names) for names in sets), "--json").output)
    assert found["verdict"] in ("equivalent", "undetermined")
    assert found["rows"][0]["ratio"]["low"] < 1 < found["rows"][0]["ratio"]["high"]


def test_compare_of_single_boots_is_undetermined(record: Record) -> None:
    a, b = record(FAST, 80.0, "a"), record(SUPER, 160.0, "b")
    found = call(compare, a, b)
    assert found.return_value == 3
    assert "Undetermined: 1 boot on one side; a verdict needs 3 on each." in found.output
    assert "tier: slug" in found.output
    as_json = json.loads(call(compare, a, b, "--json").output)
    assert as_json["exit_code"] == 3
    assert "| decode tok/s | prose |" in call(compare, a, b, "--md").output


def test_compare_draws(record: Record, tmp_path: Path) -> None:
    a, b = record(FAST, 80.0, "a"), record(SUPER, 160.0, "b")
    call(compare, a, b, "--svg", str(tmp_path / "c.svg"))
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")


def test_sets_of_runs_and_repeats(record: Record) -> None:
    runs = [record(FAST, 80.0, f"s{n}") for n in range(4)]
    assert "2 boots" in call(compare, ",".join(runs[:2]), ",".join(runs[2:])).output
    with pytest.raises(UsageError, match="in both arms"):
        call(compare, runs[0], runs[0])


def test_nothing_to_draw_is_said(record: Record, tmp_path: Path) -> None:
    a = record(FAST, 80.0, "a")
    with create_run(tmp_path / "state" / "redline" / "runs", "verify", url=None, slug=SUPER) as run:
        run.finish("complete", 0, "")
    with pytest.raises(InconclusiveError):
        call(compare, a, run.run_id, "--svg", str(tmp_path / "c.svg"))
