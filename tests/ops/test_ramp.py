"""Ramps on fake engines through real sockets: a cache that works, one that is off, one that is not reported."""

from pathlib import Path
from typing import Any

import pytest

from redline.checks.check import CheckResult, CheckStatus
from redline.checks.ramp import RampPlan
from redline.fake.spawn import fake_engine
from redline.ops.events import RampDone
from redline.ops.ramp import ramp
from redline.probe.target import Target
from redline.record.reading import read_events
from redline.record.run import create_run

pytestmark = pytest.mark.alone

_SLOW_PREFILL = ("--set", "speed.prefill_tok_s=20000.0", "--set", "speed.step_s=0.0005")


def _ramped(tmp_path: Path, scenario: str, *settings: str, **changes: Any) -> tuple[CheckResult, CheckResult]:
    with (
        fake_engine(scenario, tmp_path / "log", (*_SLOW_PREFILL, *settings)) as fake,
        create_run(tmp_path / "runs", "ramp", url=fake.url) as run,
    ):
        plan = RampPlan(**{"seed": 5, "sessions": 1, "context_tokens": 32768, **changes})
        events = list(ramp(Target(url=fake.url, model="redline-fake"), None, run, plan))
    done = events[-1]
    assert isinstance(done, RampDone)
    kinds = [event.kind for event in read_events(run.directory)]
    assert (kinds[0], kinds.count("ramp.turn"), kinds[-1]) == ("ramp.plan", len(events) - 1, "ramp.summary")
    errors, cache = done.summary.results
    return errors, cache


def test_a_cache_that_works_passes(tmp_path: Path) -> None:
    errors, cache = _ramped(tmp_path, "healthy")
    assert errors.status is CheckStatus.PASS
    assert cache.status is CheckStatus.PASS, cache
    assert "cached" in cache.message


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
def test_no_reuse_is_found(tmp_path: Path, dialect: str) -> None:
    errors, cache = _ramped(tmp_path, "no-cache-reuse", "--dialect", dialect)
    assert errors.status is CheckStatus.PASS
    assert cache.status is CheckStatus.FAIL, cache
    assert "computed anew" in cache.message


def test_without_usage_nothing_is_decided(tmp_path: Path) -> None:
    _, cache = _ramped(tmp_path, "missing-usage")
    assert cache.status is CheckStatus.INCONCLUSIVE


def test_an_error_at_depth_is_an_error_and_not_the_cache(tmp_path: Path) -> None:
    errors, cache = _ramped(tmp_path, "error-at-depth", "--set", "depth.above_tokens=9000")
    assert errors.status is CheckStatus.FAIL
    assert "status" in errors.message
    assert cache.status is not CheckStatus.FAIL
