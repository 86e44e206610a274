"""Whole reports of fake engines through the real command: in order, gated, gone on with, and always rendered."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import Home

from redline.checks.soak_verdict import SoakSummary
from redline.checks.stages import FULL, Stage, StageBegan, StageEnded, StagesPlan, StageState
from redline.cli.report_stages import Asked, report_stages
from redline.fake.spawn import fake_engine
from redline.ops import stages
from redline.ops.report import report_runs, stage_runs
from redline.record.reading import RunRecord, load_run
from redline.record.run import create_run
from redline.report.html import render_html
from redline.report.markdown import render_markdown

_FAST = (
    "--set", "speed.step_s=0.0003", "--set", "speed.prefill_tok_s=400000.0", "--set", "speed.overhead_s=0.0003",
    "--set", "answer.stops_after_tokens=40", "--set", "model.context=6500",
)  # fmt: skip
_SOAK = ("--skip", "stress", "--skip", "bench", "--skip", "ramp")


def reports(home: Home) -> list[RunRecord]:
    """Return the whole reports of a home, the latest first."""
    rows = json.loads(home.run("runs", "--command", "report", "--json").stdout)
    return [load_run(home.settings.runs_dir / row["folder"]) for row in rows]


def states(record: RunRecord) -> dict[str, StageState]:
    return {row.stage.value: row.state for row in record.payloads(StageEnded)}


def test_the_short_report_verifies_measures_and_is_written(home: Home, tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake:
        done = home.run("report", "--bench", "--url", fake.url, "--html", str(tmp_path / "r.html"))
    (record,) = reports(home)
    assert list(states(record)) == ["smoke", "quick"]
    assert states(record)["quick"] is StageState.PASSED
    assert done.returncode == {"passed": 0, "failed": 1, "open": 3}[states(record)["smoke"].value], done.stdout
    text = (record.directory / "report.md").read_text()
    assert re.search(r"\| quick \| passed \| prose [\d.]+, code [\d.]+ tok/s", text)
    assert (tmp_path / "r.html").read_text() == (record.directory / "report.html").read_text()
    assert record.outcome == "complete"
    again = home.run("report", record.run_id)  # the run of a report stands for its stages' runs
    assert "| quick | passed |" in again.stdout
    assert re.search(r"\| prose \| quick-\d \| \d+ in 1", again.stdout)


def test_the_full_report_goes_through_five_stages_in_order(home: Home, tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake:
        done = home.run("report", "--full", "--url", fake.url, "--soak-turns", "10", "--json")
    found = json.loads(done.stdout)
    assert [row["stage"] for row in found["stages"]] == [stage.value for stage in FULL]
    assert {row["state"] for row in found["stages"]} <= {"passed", "failed", "open"}, found["stages"]
    assert done.returncode == found["exit_code"]
    text = Path(found["html"]).read_text()
    assert "Long prompts" in text
    assert "Memory over time" in text
    assert len(text.encode()) < 1_500_000
    kinds = [
        record.manifest.command
        for record in (load_run(home.settings.runs_dir / row["run_id"]) for row in found["stages"])
    ]
    assert kinds == ["verify", "verify", "soak", "bench", "ramp"]


def test_a_server_that_died_stops_the_stages_and_is_no_cascade(home: Home, tmp_path: Path) -> None:
    settings = (*_FAST, "--set", "life.dies_after_requests=3")
    with fake_engine("dies-after-requests", tmp_path / "log", settings) as fake:
        done = home.run("report", "--full", "--url", fake.url, "--soak-turns", "10")
    (record,) = reports(home)
    assert (done.returncode, states(record)["verify"]) == (1, StageState.FAILED)
    assert [state for stage, state in states(record).items() if stage != "verify"] == [StageState.NOT_RUN] * 4
    assert "no longer answers" in done.stdout
    text = (record.directory / "report.md").read_text()
    assert "Stages without a verdict: stress, soak, bench and ramp (the server no longer answers" in text


def _until(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return
    raise AssertionError(f"{words!r} was never shown")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_is_gone_on_with_after_an_interruption(home: Home, tmp_path: Path, number: signal.Signals) -> None:
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake:
        with home.start("report", "--full", "--url", fake.url, "--soak-turns", "80", *_SOAK) as process:
            _until(process, "20 of 80")
            process.send_signal(number)
            rest = process.stdout.read() if process.stdout else ""
        (cut,) = reports(home)
        if number is signal.SIGKILL:
            assert cut.outcome == "cut off"
            text = home.run("report", cut.run_id).stdout
            assert "| soak | interrupted | cut off |" in text
            assert "- `redline report --resume`" in text
        else:
            assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
            assert "report --resume goes on" in rest
            assert (states(cut)["soak"], cut.outcome) == (StageState.INTERRUPTED, "interrupted")
            assert "| soak | interrupted | interrupted |" in (cut.directory / "report.md").read_text()
            (summary,) = load_run(home.settings.runs_dir / stage_runs(cut)[-1]).payloads(SoakSummary)
            assert summary.statement.startswith("interrupted: ")
        # Shorten what is left, so that the test ends; the plan of the soak itself stands in the soak's own run.
        soak = home.settings.runs_dir / stage_runs(cut)[-1] / "events.jsonl"
        soak.write_text(soak.read_text().replace('"turns": 80', '"turns": 30', 1))
        done = home.run("report", "--resume", "--url", fake.url)
        assert f"goes on with report {cut.run_id}; done there: verify" in done.stdout, done.stdout + done.stderr
    later, _ = reports(home)
    (plan,) = later.payloads(StagesPlan)
    assert plan.resumes == cut.run_id
    verify, last = later.payloads(StageEnded)
    assert verify.earlier == cut.run_id  # its verdict stood
    assert last.earlier is None
    taken = load_run(home.settings.runs_dir / str(last.run_id))
    assert "soak.resumed" in (taken.directory / "events.jsonl").read_text()


def test_another_life_of_the_server_is_not_gone_on_with(home: Home, tmp_path: Path) -> None:
    with (
        fake_engine("healthy", tmp_path / "log", _FAST) as fake,
        home.start("report", "--full", "--url", fake.url, "--soak-turns", "80", *_SOAK) as process,
    ):
        _until(process, "soak     begins")
        process.send_signal(signal.SIGINT)
    with fake_engine("healthy", tmp_path / "log2", (*_FAST, "--port", str(fake.port))) as other:
        done = home.run("report", "--resume", "--url", other.url)
    assert (done.returncode, "There is nothing to go on with" in done.stderr) == (3, True)


def test_on_a_terminal_the_table_is_redrawn_in_place(home: Home, tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake:
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "redline", "report", "--bench", "--url", fake.url],
            env={**home.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
            cwd=home.path,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            shown = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # Linux says EIO when the other side is closed
                    break
                if not part:
                    break
                shown += part
        os.close(ours)
    assert process.returncode in (0, 1, 3)
    assert b"\x1b[3A" in shown  # two stages and a line for the whole
    last = shown.decode().rsplit("\x1b[3A", 1)[1]
    assert re.search(r"smoke +(passed|failed|open)", last)
    assert re.search(r"quick +passed", last)
    assert re.search(rb"running +[\d.]+ s +\d+ of \d+", shown)


def test_usage_of_stages_is_refused_with_a_sentence(home: Home) -> None:
    for arguments in (
        ("--full", "--bench"),
        ("--soak-turns", "3"),
        ("--soak-minutes", "3"),
        ("--full", "--soak-turns", "3", "--soak-minutes", "3"),
        ("--full", "--preview"),
        ("--skip", "soak"),
        ("--resume", "--bench"),
    ):
        done = home.run("report", *arguments)
        assert done.returncode == 2, arguments


def test_without_a_server_the_rig_is_still_described(home: Home) -> None:
    done = home.run("report", "--full")
    assert (done.returncode, "redline up" in done.stderr) == (7, True)
    assert home.run("report").stdout.startswith("## redline: this rig")


def test_a_stage_cannot_lead_a_reader_out_of_the_runs(tmp_path: Path, home: Home) -> None:
    runs = home.settings.runs_dir
    with create_run(runs, "report", url="http://127.0.0.1:1", slug="a/b-c") as run:
        run.append(StagesPlan(stages=(Stage.SMOKE, Stage.QUICK)))
        run.append(StageBegan(stage=Stage.SMOKE, run_id="../../../etc"))
        run.append(StageBegan(stage=Stage.QUICK, run_id="2026-01-01-zzz"))
        run.finish("complete", 0, "")
    model = report_runs(home.settings, [run.run_id])
    assert len(model.problems) == 2
    assert "which is no run" in model.problems[0]
    assert "manifest.json is missing" in model.problems[1]


def test_a_fault_of_ours_is_recorded_and_the_report_written(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(stages, "_play", faulty)
    asked = Asked(None, "", "redline-fake", short=True, resume=False, skipped=frozenset(), soak_turns=None)
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake, pytest.raises(ZeroDivisionError):
        report_stages(home.settings, replace(asked, url=fake.url), None, redact=True, as_json=False)
    (record,) = reports(home)
    assert (states(record), record.outcome) == ({"smoke": StageState.BROKEN}, "failed")
    assert "a fault of redline: ZeroDivisionError" in (record.directory / "report.md").read_text()


@pytest.mark.parametrize("redact", [True, False])
def test_hostile_words_of_a_stage_are_contained(home: Home, redact: bool) -> None:
    evil = "</td><script>alert(1)</script> | \x1b[2J `x` @someone #1" + "x" * 5000
    with create_run(home.settings.runs_dir, "report", url=None, slug="a/b-c") as run:
        run.append(StagesPlan(stages=(Stage.SMOKE,)))
        run.append(StageEnded(stage=Stage.SMOKE, state=StageState.BROKEN, reason=evil, run_id=evil))
        run.finish("complete", 3, "")
    model = report_runs(home.settings, [run.run_id], redact=redact)
    for text in (render_html(model), render_markdown(model)):
        assert "<script" not in text
        assert "\x1b" not in text
        assert len(text) < 100_000
