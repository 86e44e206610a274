"""Streams side by side on fake engines through real sockets."""

from pathlib import Path

import pytest

from redline.bench.concurrency import ConcurrencyPlan
from redline.checks.check import CheckResult, CheckStatus
from redline.fake.spawn import fake_engine
from redline.ops.concurrency import concurrency, default_levels
from redline.ops.events import ConcurrencyDone
from redline.probe.target import Target
from redline.record.reading import read_events
from redline.record.run import create_run

pytestmark = pytest.mark.alone


def _measured(tmp_path: Path, scenario: str, *settings: str, slots: int | None = 4) -> dict[str, CheckResult]:
    with (
        fake_engine(scenario, tmp_path / "log", settings) as fake,
        create_run(tmp_path / "runs", "concurrency", url=fake.url) as run,
    ):
        plan = ConcurrencyPlan(levels=(1, 4), rounds=2, max_tokens=96, seed=9, slots=slots, timeout_s=5.0)
        events = list(concurrency(Target(url=fake.url, model="redline-fake"), run, plan))
    assert isinstance(events[-1], ConcurrencyDone)
    kinds = [event.kind for event in read_events(run.directory)]
    assert kinds.count("concurrency.round") == 4
    return {row.check_id.removeprefix("conc."): row for row in events[-1].summary.results}


def test_a_healthy_engine_holds_its_slots(tmp_path: Path) -> None:
    found = _measured(tmp_path, "healthy")
    assert {row.status for row in found.values()} == {CheckStatus.PASS}, found


def test_a_pool_that_is_too_small_is_found(tmp_path: Path) -> None:
    found = _measured(tmp_path, "pool-overcommitted")
    assert found["fit"].status is CheckStatus.FAIL
    assert "preempted" in found["fit"].message


def test_without_counts_there_is_no_rate(tmp_path: Path) -> None:
    found = _measured(tmp_path, "missing-usage", slots=None)
    assert found["errors"].status is CheckStatus.PASS
    assert {found["fit"].status, found["scaling"].status} == {CheckStatus.INCONCLUSIVE}


def test_truncated_streams_are_errors(tmp_path: Path) -> None:
    found = _measured(tmp_path, "truncated-stream", slots=None)
    assert (found["errors"].status, "truncated" in found["errors"].message) == (CheckStatus.FAIL, True)


def test_levels_follow_the_slots() -> None:
    assert default_levels(6) == (1, 2, 4, 6)
    assert default_levels(None) == (1, 2, 4)
