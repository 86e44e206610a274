"""`verify` from the command line against a fake engine: the record, the budget, and Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from redline.fake.spawn import fake_engine
from redline.fake.truth import Answered, read_truth


def _verify(url: str, state: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "redline", "verify", "--url", url, *arguments],
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _events(state: Path) -> list[dict[str, Any]]:
    (path,) = state.rglob("events.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_full_names_its_budget_first_and_keeps_it(tmp_path: Path) -> None:
    truth = tmp_path / "truth"
    played = ["--set", "speed.step_s=0.001", "--truth", str(truth)]
    with fake_engine("healthy", tmp_path / "log", played) as fake, fake_engine("healthy", tmp_path / "log2") as other:
        process = _verify(fake.url, tmp_path / "state", "--suite", "full", "--reference-url", other.url)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert said.index("at most 2,916 output and 3,610 prompt tokens") < said.index("check ")
    (spent,) = [event["payload"] for event in _events(tmp_path / "state") if event["kind"] == "check.spent"]
    assert spent["completion_tokens"] <= 2916
    assert spent["prompt_tokens"] <= 3610
    # Every request counts, whichever door it came through: what the engine wrote down is what was spent.
    answered = [row for row in read_truth(truth) if isinstance(row, Answered)]
    assert spent["prompt_tokens"] == sum(row.prompt_tokens for row in answered)
    assert spent["completion_tokens"] == sum(row.completion_tokens for row in answered)
    assert (spent["requests"], spent["uncounted"]) == (len(answered), 0)


def test_an_interrupted_suite_leaves_what_it_found(tmp_path: Path) -> None:
    with fake_engine("healthy", tmp_path / "log", ["--set", "speed.step_s=0.1"]) as fake:
        process = _verify(fake.url, tmp_path / "state", "--suite", "full")
        assert process.stdout is not None
        for line in process.stdout:
            if "basic answer" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    events = _events(tmp_path / "state")
    found = [event["payload"]["check_id"] for event in events if event["kind"] == "check.result"]
    assert found[:2] == ["reach.models", "boot.log_assertions"]
    assert events[-1]["kind"] == "run.finished"
    assert events[-1]["payload"]["outcome"] == "interrupted"
