"""What stages mean together, and how long the rest will take as far as anybody knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.checks.stages import FULL, Stage, StageEnded, StageState, remaining_s, stage_left_s, verdict_of_stages
from redline.errors import ExitCode

USUAL = {Stage.VERIFY: 40.0, Stage.STRESS: 300.0, Stage.SOAK: 600.0, Stage.BENCH: 500.0, Stage.RAMP: 120.0}


def ended(*states: StageState) -> list[StageEnded]:
    return [StageEnded(stage=stage, state=state, reason="x") for stage, state in zip(FULL, states, strict=False)]


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ((StageState.PASSED, StageState.PASSED), ExitCode.DONE),
        ((StageState.PASSED, StageState.OPEN), ExitCode.INCONCLUSIVE),
        ((StageState.OPEN, StageState.FAILED), ExitCode.CHECK_FAILED),
        ((StageState.PASSED, StageState.NOT_RUN), ExitCode.INCONCLUSIVE),
        ((StageState.PASSED, StageState.BROKEN), ExitCode.INCONCLUSIVE),
        ((), ExitCode.INCONCLUSIVE),
    ],
)
def test_the_worst_news_decides_and_a_gap_is_no_pass(states: tuple[StageState, ...], code: ExitCode) -> None:
    assert verdict_of_stages(ended(*states)) is code


def test_what_is_left_is_the_running_one_and_all_that_wait() -> None:
    assert remaining_s(FULL, [Stage.VERIFY], 0.5, 100.0, USUAL) == 100 + 600 + 500 + 120
    assert remaining_s(FULL, [Stage.VERIFY], 0.1, 100.0, USUAL) == 200 + 600 + 500 + 120
    assert remaining_s(FULL, list(FULL), 0.0, 0.0, {}) == 0.0


def test_nobody_knows_what_was_never_seen() -> None:
    assert remaining_s(FULL, [], 0.5, 100.0, {}) is None
    assert remaining_s((Stage.RAMP,), [], 0.0, 3.0, {}) is None
    assert remaining_s((Stage.RAMP,), [], 0.5, 3.0, {}) == 3.0


@given(st.floats(0, 1), st.floats(0, 1e5), st.one_of(st.none(), st.floats(0, 1e5)))
def test_what_is_left_of_a_stage_is_never_negative(share: float, elapsed: float, usual: float | None) -> None:
    left = stage_left_s(share, elapsed, usual)
    assert left is None or left >= 0
    assert stage_left_s(1.0, elapsed, usual) == 0
