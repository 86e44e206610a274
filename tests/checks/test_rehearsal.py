"""Every scenario of the fake engine against the checks that it is about, in a real process."""

from pathlib import Path

import pytest

from redline.checks.check import CheckStatus, LogRule
from redline.checks.reach import BootLog
from redline.checks.rehearsal import Part, load_parts, rehearse
from redline.checks.suites import Suite, all_checks, suite_checks
from redline.fake.scenario import load_scenario, scenario_names

PARTS = [part for part in load_parts() if not part.beyond]
# Steps of a third of their length: what is tested is a verdict, not a time.
FAST = ("speed.step_s=0.001",)


def test_every_scenario_has_a_part() -> None:
    assert sorted(part.scenario for part in load_parts()) == scenario_names()


def test_every_check_that_can_fail_is_caught_failing() -> None:
    caught = {name for part in load_parts() for name in part.caught_by}
    # A process can neither throttle a card nor swap itself out: tests/checks/test_telemetry.py.
    beyond_a_process = {"telemetry.conditions", "telemetry.host_memory"}
    assert set(all_checks()) == caught - {"engine.alive"} | beyond_a_process


@pytest.mark.parametrize("part", [part for part in PARTS if part.caught_by], ids=lambda part: part.scenario)
def test_a_fault_is_caught_by_its_check_and_no_other(part: Part, tmp_path: Path) -> None:
    settings = (*FAST, *part.settings)
    results = rehearse(
        part.scenario, part.chosen(), tmp_path, settings=settings, patience=part.patience, reference=part.reference
    )
    failed = [row.check_id for row in results if row.status is CheckStatus.FAIL]
    assert failed == list(part.caught_by), [f"{row.check_id}: {row.message}" for row in results]


@pytest.mark.parametrize("part", [part for part in PARTS if not part.caught_by], ids=lambda part: part.scenario)
def test_a_healthy_engine_is_never_failed(part: Part, tmp_path: Path) -> None:
    # Whole suites run in a smaller context here; benchmarks/confusion.py fills the scenario's own.
    smaller = ("model.context=8192",) if "stress" in part.suites else ()
    settings = (*FAST, *smaller, *part.settings)
    results = rehearse(part.scenario, part.chosen(), tmp_path, settings=settings, reference=part.reference)
    bad = [f"{row.check_id}: {row.message}" for row in results if row.status is CheckStatus.FAIL]
    assert not bad
    assert any(row.status is CheckStatus.PASS for row in results)


def test_a_healthy_engine_passes_everything_as_llamacpp_too(tmp_path: Path) -> None:
    results = rehearse(
        "healthy", suite_checks(Suite.FULL), tmp_path, dialect="llamacpp", settings=FAST, reference="healthy"
    )
    assert {row.status for row in results} == {CheckStatus.PASS}


def test_a_declared_log_line_that_never_came_is_a_failure(tmp_path: Path) -> None:
    rule = LogRule("patch applied: long-prefill", wanted=True, meaning="the patch is not in this build")
    (result,) = rehearse("healthy", [BootLog()], tmp_path, rules=(rule,))
    assert result.status is CheckStatus.FAIL
    assert "not in this build" in result.message


def test_what_a_model_lacks_is_skipped_as_not_offered(tmp_path: Path) -> None:
    assert not load_scenario("healthy-text-only").model.tools
    results = rehearse("healthy-text-only", suite_checks(Suite.FULL), tmp_path, settings=FAST)
    skipped = {row.check_id: row.skip_reason for row in results if row.status is CheckStatus.SKIP}
    assert {"tools.call", "vision.facts", "thinking.split", "spec.acceptance"} <= set(skipped)
    assert set(skipped.values()) == {"not_offered"}


def test_a_death_is_blamed_on_the_check_before_and_the_rest_is_skipped(tmp_path: Path) -> None:
    checks = suite_checks(Suite.FULL)
    results = rehearse("dies-after-requests", checks, tmp_path, settings=(*FAST, "life.dies_after_requests=3"))
    at = next(index for index, row in enumerate(results) if row.check_id == "engine.alive")
    assert results[at].failure_class == "engine_died"
    assert results[at - 1].check_id in results[at].message
    assert {row.skip_reason for row in results[at + 1 :]} == {"unmet"}
