"""Soaks of fake engines through real sockets: faults are found, a cut-off run is usable and can be gone on with."""

import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from redline.checks.check import CheckResult, CheckStatus
from redline.checks.soak import SessionKind, SoakPlan
from redline.fake.spawn import FakeProcess, command, fake_engine
from redline.ops.events import SoakDone, TurnDone
from redline.ops.soak import soak
from redline.probe.target import Target
from redline.record.reading import read_events
from redline.record.run import create_run

pytestmark = pytest.mark.alone

_QUICK = (
    "--set", "speed.step_s=0.0005", "--set", "speed.prefill_tok_s=400000.0", "--set", "speed.overhead_s=0.0005",
)  # fmt: skip
_SHORT = (*_QUICK, "--set", "answer.stops_after_tokens=40")
_CONTEXT = 6500


def _soaked(fake: FakeProcess, tmp_path: Path, **changes: Any) -> dict[str, CheckResult]:
    settings = {"turns": 10, "seed": 3, "context_tokens": _CONTEXT, "timeout_s": 20.0, "revive_s": 2.0, **changes}
    with create_run(tmp_path / "runs", "soak", url=fake.url) as run:
        events = list(soak(Target(url=fake.url, model="redline-fake"), None, run, SoakPlan(**settings)))
    done = events[-1]
    assert isinstance(done, SoakDone)
    kinds = [event.kind for event in read_events(run.directory)]
    assert kinds.count("soak.turn") == done.summary.turns == sum(isinstance(event, TurnDone) for event in events)
    assert kinds[-1] == "soak.summary"
    return {row.check_id.removeprefix("soak."): row for row in done.summary.results}


def test_a_healthy_engine_passes(tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", _SHORT) as fake:
        found = _soaked(fake, tmp_path, turns=50)
    assert {row.status for row in found.values()} <= {CheckStatus.PASS, CheckStatus.INCONCLUSIVE}
    for name in ("errors", "silent_empty", "trend.memory"):
        assert found[name].status is CheckStatus.PASS, found[name]


@pytest.mark.parametrize(
    ("scenario", "check", "turns", "settings"),
    [
        ("memory-growth", "trend.memory", 50, ()),
        ("slower-with-age", "trend.rate", 50, ("--set", "speed.step_s=0.003", "--set", "speed.age_factor=0.06")),
    ],
)
def test_what_changes_with_age_is_found(
    tmp_path: Path, scenario: str, check: str, turns: int, settings: tuple[str, ...]
) -> None:
    with fake_engine(scenario, tmp_path / "log", (*_SHORT, *settings)) as fake:
        found = _soaked(fake, tmp_path, turns=turns)
    assert found[check].status is CheckStatus.FAIL, found[check]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("silent-empty-closed", "the stream closed without a finish"),
        ("silent-empty-no-tokens", "stopped without a token"),
        ("silent-empty-reasoning", "the budget went into reasoning"),
        ("silent-empty-masked", "only where tools or a schema were in force"),
    ],
)
def test_empty_answers_have_a_cause(tmp_path: Path, scenario: str, words: str) -> None:
    settings = _QUICK if scenario == "silent-empty-reasoning" else _SHORT
    with fake_engine(scenario, tmp_path / "log", settings) as fake:
        found = _soaked(fake, tmp_path, kind=SessionKind.FRESH)
    assert found["silent_empty"].status is CheckStatus.FAIL
    assert words in found["silent_empty"].message


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("truncated-stream", "truncated"),
        ("error-in-200", "server: CUDA error"),
        ("endless-stream", "timeout: no end after 1 s"),
        ("hang-mid-stream", "timeout: no end after 1 s"),
    ],
)
def test_what_is_no_answer_is_an_error_and_never_a_rate(tmp_path: Path, scenario: str, words: str) -> None:
    with fake_engine(scenario, tmp_path / "log", _QUICK) as fake:
        found = _soaked(fake, tmp_path, turns=5, timeout_s=1.0)
    assert found["errors"].status is CheckStatus.FAIL
    assert words in found["errors"].message
    assert "no decode rate" in found["trend.rate"].message


@pytest.mark.parametrize(
    ("scenario", "words"), [("missing-usage", "gives no token counts"), ("zero-tokens", "counts 0 tokens beside text")]
)
def test_without_counts_there_is_no_rate(tmp_path: Path, scenario: str, words: str) -> None:
    with fake_engine(scenario, tmp_path / "log", _QUICK) as fake:
        found = _soaked(fake, tmp_path, turns=5)
    assert (found["trend.rate"].status, words in found["trend.rate"].message) == (CheckStatus.INCONCLUSIVE, True)


def test_death_is_named(tmp_path: Path) -> None:
    with fake_engine("dies-after-requests", tmp_path / "log", (*_SHORT, "--set", "life.dies_after_requests=7")) as fake:
        found = _soaked(fake, tmp_path, turns=20)
    assert (found["errors"].status, found["errors"].failure_class) == (CheckStatus.FAIL, "engine died")


def test_a_restart_in_the_middle_is_named(tmp_path: Path) -> None:
    settings = (*_SHORT, "--set", "life.dies_after_requests=7")
    with fake_engine("dies-after-requests", tmp_path / "log", settings) as fake:
        again: list[subprocess.Popen[bytes]] = []

        def restart() -> None:
            fake.process.wait()
            again.append(
                subprocess.Popen(
                    command("healthy", (*_SHORT, "--port", str(fake.port))), stdout=subprocess.DEVNULL, stderr=-3
                )
            )

        keeper = threading.Thread(target=restart)
        keeper.start()
        try:
            found = _soaked(fake, tmp_path, turns=20, revive_s=15.0)
        finally:
            fake.process.kill()
            keeper.join()
            again[0].kill()
            again[0].wait()
    assert (found["errors"].status, found["errors"].failure_class) == (CheckStatus.FAIL, "engine restarted")


def test_ctrl_c_leaves_a_usable_run_that_can_be_gone_on_with(home: Any, tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", (*_SHORT, "--set", f"model.context={_CONTEXT}")) as fake:
        lines = []
        with home.start("soak", "--url", fake.url, "--turns", "500", "--seed", "3") as process:
            for line in process.stdout:
                lines.append(line)
                if "session 2" in line:
                    process.send_signal(signal.SIGINT)
        assert process.returncode == 130
        run_id = next(line for line in lines if "goes on" in line).split("--resume ")[1].split()[0]
        folder = home.settings.runs_dir / run_id
        events = list(read_events(folder))
        assert events[-1].payload["outcome"] == "interrupted"
        summary = next(event.payload for event in events if event.kind == "soak.summary")
        assert summary["statement"].startswith("interrupted: 0 of ")
        assert summary["sessions"] >= 2

        # The plan of the earlier run holds; a short one is put in its place so that the test ends.
        text = (folder / "events.jsonl").read_text()
        (folder / "events.jsonl").write_text(text.replace('"turns": 500', '"turns": 20', 1))
        done = home.run("soak", "--url", fake.url, "--resume", run_id, "--json")
        answer = json.loads(done.stdout)
        assert (answer["exit_code"], answer["summary"]["sessions"], answer["summary"]["turns"]) == (3, 4, 20)
    with fake_engine("healthy", tmp_path / "log", (*_SHORT, "--port", str(fake.port))) as other:
        done = home.run("soak", "--url", other.url, "--resume", answer["run_id"])
        assert (done.returncode, "restarted since" in done.stderr) == (5, True)


def test_a_dead_endpoint_is_named_at_once(home: Any, free_port: Any) -> None:
    done = home.run("soak", "--url", f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 7
    assert "cannot be reached" in done.stderr
