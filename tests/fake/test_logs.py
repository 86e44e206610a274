"""What the fake prints is read as what it plays: stages, facts and faults, by the code that reads real engines."""

import time
from pathlib import Path
from typing import Any

import pytest

from redline.engine.boot_facts import parse_boot_facts
from redline.engine.diagnose import DiagnosisVerdict, diagnose
from redline.engine.log_text import split_lines
from redline.engine.stages import stages_of


def _lines(log: Path) -> list[str]:
    return list(split_lines([log.read_bytes()]))


@pytest.mark.parametrize(
    ("scenario", "dialect", "signature"),
    [
        ("oom-weights", "vllm", "oom-loading-weights"),
        ("oom-weights", "llamacpp", "gpu-full-loading-weights"),
        ("oom-kv-pool", "vllm", "kv-cache-too-small"),
        ("oom-kv-pool", "llamacpp", "kv-cache-allocation-failed"),
        ("oom-graph-capture", "vllm", "oom-capturing-graphs"),
        ("port-stolen", "vllm", "port-taken"),
        ("port-stolen", "llamacpp", "port-taken-llamacpp"),
    ],
)
def test_boots_that_fail_are_diagnosed(started: Any, scenario: str, dialect: str, signature: str) -> None:
    process, log = started(
        scenario, "--dialect", dialect, "--set", "boot.stranger_s=0.1" if "port" in scenario else "boot.line_s=0.0"
    )
    assert process.wait(10) == 1
    assert diagnose(_lines(log), dialect).signature_id == signature


def test_deaths_while_serving_are_diagnosed(play: Any) -> None:
    with play("oom-first-prefill") as talk:
        talk.stream("gulls over the old pier " * 2500)
        talk.fake.process.wait(5)
        assert diagnose(_lines(talk.fake.log)).signature_id == "oom-first-prefill"
    with play("dies-after-requests", "--set", "life.dies_after_requests=0") as talk:
        talk.stream("Hi")
        talk.fake.process.wait(5)
        assert diagnose(_lines(talk.fake.log)).signature_id == "illegal-memory-access"


def test_a_dead_drafter_is_seen_in_the_log(play: Any) -> None:
    with play("dead-drafter", "--set", "boot.stats_s=0.1", "--set", "speed.step_s=0.0005") as talk:
        talk.chat("Tell me a story.", max_tokens=800)
        deadline = time.monotonic() + 5
        while "SpecDecoding" not in talk.fake.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        found = diagnose(_lines(talk.fake.log))
    assert found.signature_id == "drafter-dead"


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
@pytest.mark.parametrize("scenario", ["healthy", "log-invalid-utf8", "log-huge-lines"])
def test_healthy_boots_show_nothing_and_state_their_facts(play: Any, scenario: str, dialect: str) -> None:
    with play(scenario, "--dialect", dialect) as talk:
        lines = _lines(talk.fake.log)
    assert diagnose(lines, dialect).verdict is DiagnosisVerdict.NOTHING
    facts = parse_boot_facts(dialect, lines)
    assert facts.context == 32768
    assert facts.engine_version == ("0.33.0" if dialect == "vllm" else "b11549")
    assert facts.pool_tokens == (131_072 if dialect == "vllm" else None)
    reached = [item.stage for item in stages_of(dialect) if any(item.text in line for line in lines)]
    assert reached[0] == "loading"
    assert reached[-1] == "warming"
