"""Ctrl-C and going on, for every long command, as real processes against the fake engine."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from redline.checks.check import CheckResult, CheckStatus, SkipReason
from redline.checks.suites import Suite, suite_checks
from redline.errors import RefusedError, UsageError
from redline.fake.spawn import fake_engine
from redline.ops.resume import read_earlier_run
from redline.ops.verify import standing
from redline.probe.target import Target
from redline.record.run import create_run

# Command, the line after which it is interrupted, the kind of each piece, and that of what they add up to.
COMMANDS = {
    "verify": (("verify", "--suite", "stress"), "editor's request", "check.result", "check.spent"),
    "soak": (("soak", "--turns", "10", "--kind", "fresh"), "session 1", "soak.turn", "soak.summary"),
    "ramp": (("ramp", "--sessions", "2"), "session 1", "ramp.turn", "ramp.summary"),
    "concurrency": (("concurrency", "--streams", "1,2", "--rounds", "3", "--tokens", "32", "--prompt-tokens", "64"),
                    "round 2", "concurrency.round", "concurrency.summary"),
    "bench": (("bench", "--class", "chat", "--width", "0.001"), "measuring", "bench.sample", "bench.summary"),
}  # fmt: skip
_FAST = ("--set", "speed.step_s=0.0008", "--set", "speed.prefill_tok_s=200000.0", "--set", "model.context=8192")


class _Shell:
    """Runs redline with a state folder of its own."""

    def __init__(self, state: Path) -> None:
        self._environ = {**os.environ, "XDG_STATE_HOME": str(state), "XDG_CONFIG_HOME": str(state)}
        self._runs = state / "redline" / "runs"

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "redline", *words],
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def payloads(self, run: str, kind: str) -> list[Any]:
        lines = (self._runs / run / "events.jsonl").read_text(encoding="utf-8").splitlines()
        return [row["payload"] for row in map(json.loads, lines) if row["kind"] == kind]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_command_is_interrupted_and_goes_on(tmp_path: Path, name: str) -> None:
    words, line, piece, whole = COMMANDS[name]
    shell = _Shell(tmp_path / "state")
    with fake_engine("healthy", tmp_path / "log", _FAST) as fake:
        first = shell.start(*words, "--url", fake.url)
        assert first.stdout is not None
        for said in first.stdout:
            if line in said:
                break
        first.send_signal(signal.SIGINT)
        rest, _ = first.communicate(timeout=60)
        assert first.returncode == 130, rest
        assert f"redline {name} --resume " in rest, rest
        run = rest.split("--resume ")[1].split()[0]
        found = shell.payloads(run, piece)
        assert found
        assert shell.payloads(run, whole)
        assert shell.payloads(run, "run.finished")[-1]["outcome"] == "interrupted"
        second = shell.start(words[0], "--url", fake.url, "--resume", run, "--json")
        out, _ = second.communicate(timeout=100)
    assert second.returncode in (0, 3), out
    later = json.loads(out.splitlines()[-1])["run_id"]
    both = shell.payloads(later, piece)
    assert shell.payloads(later, "run.finished")[-1]["outcome"] == "complete"
    taken = [row for row in found if row in both]
    assert taken, "nothing was taken over"
    [said] = shell.payloads(later, "soak.resumed" if words[0] == "soak" else "run.resumed")
    assert said["run_id"] == run
    assert said.get("taken", said.get("turns")) >= len(taken)
    assert len(both) > len(taken)
    keys = [_key(row) for row in both]
    assert len(keys) == len(set(keys)), "something was asked twice"


def _key(row: Any) -> tuple[Any, ...]:
    names = ("check_id", "session", "turn", "streams", "number", "prompt_class", "prompt_index")
    return tuple(row.get(name) for name in names)


def test_a_run_of_another_server_or_command_is_refused(tmp_path: Path) -> None:
    with create_run(tmp_path, "ramp", url="http://127.0.0.1:1") as run:
        pass
    one = Target(url="http://127.0.0.1:1", model="m")
    assert read_earlier_run(tmp_path, run.run_id, one, "ramp").manifest.run_id == run.run_id
    with pytest.raises(RefusedError, match="not this server"):
        read_earlier_run(tmp_path, run.run_id, Target(url="http://127.0.0.1:2", model="m"), "ramp")
    with pytest.raises(UsageError, match="is of `ramp`"):
        read_earlier_run(tmp_path, run.run_id, one, "bench")
    with pytest.raises(UsageError, match="There is no run"):
        read_earlier_run(tmp_path, "2026-01-01-000", one, "ramp")


def _row(check_id: str, status: CheckStatus = CheckStatus.PASS, reason: SkipReason | None = None) -> CheckResult:
    return CheckResult(check_id=check_id, title="", status=status, message="", failure_class="", skip_reason=reason)


def test_verdicts_that_taught_nothing_are_asked_again() -> None:
    checks = suite_checks(Suite.STRESS)
    rows = (
        _row("reach.models"),
        _row("thinking.switch"),
        _row("spec.cumulative", CheckStatus.FAIL),
        _row("tools.drop_rate", CheckStatus.SKIP, SkipReason.NOT_OFFERED),
        _row("boundary.ide_shape", CheckStatus.INCONCLUSIVE),
        _row("boundary.agent_history", CheckStatus.SKIP, SkipReason.UNMET),
        _row("ctx.ladder"),
        _row("engine.alive", CheckStatus.FAIL),
    )
    assert [row.check_id for row in standing(checks, rows)] == ["spec.cumulative", "tools.drop_rate"]
    judged = (*rows, _row("ctx.ceiling"), _row("ctx.recall"))
    assert [row.check_id for row in standing(checks, judged)][2:] == ["ctx.ladder", "ctx.ceiling", "ctx.recall"]
