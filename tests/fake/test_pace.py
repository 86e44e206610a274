"""The timing and drafting model against what it promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.fake.pace import Pace, Step, prefill_s
from redline.fake.scenario import Drafter, Speed


def _steps(
    speed: Speed, drafter: Drafter | None, tokens: int, *, context: int = 10, spoken: int = 0, answered: int = 0
) -> list[Step]:
    return list(Pace(speed, drafter, seed=1, answered=answered, spoken=spoken).steps(context, tokens))


@given(st.integers(1, 300), st.integers(0, 8), st.floats(0, 1), st.sampled_from(["steady", "dead", "idle"]))
def test_steps_make_exactly_the_tokens(tokens: int, depth: int, acceptance: float, mode: str) -> None:
    drafter = Drafter(depth=depth, acceptance=acceptance, mode=mode)  # type: ignore[arg-type]
    steps = _steps(Speed(), drafter, tokens)
    assert sum(step.tokens for step in steps) == tokens
    assert all(step.tokens == 1 + step.accepted for step in steps)
    assert all(0 <= step.accepted <= step.drafted <= depth for step in steps)


def test_acceptance_is_the_chance_that_was_given() -> None:
    steps = _steps(Speed(), Drafter(depth=3, acceptance=0.7), 20_000)[1:-2]
    mean = 1 + sum(step.accepted for step in steps) / len(steps)
    assert mean == pytest.approx(1 + 0.7 + 0.7**2 + 0.7**3, abs=0.05)


def test_a_dead_drafter_drafts_and_an_idle_one_does_not() -> None:
    dead, idle = (_steps(Speed(), Drafter(mode=mode), 50)[1:] for mode in ("dead", "idle"))
    assert {(step.drafted, step.accepted) for step in dead} == {(3, 0)}
    assert {(step.drafted, step.accepted) for step in idle} == {(0, 0)}


def test_a_collapse_comes_at_its_token() -> None:
    drafter = Drafter(mode="collapse", acceptance=1.0, collapse_after_tokens=500)
    before, after = _steps(Speed(), drafter, 100, spoken=0), _steps(Speed(), drafter, 100, spoken=500)
    assert sum(step.accepted for step in before) > 60
    assert sum(step.accepted for step in after) == 0


def test_depth_age_and_prefill_lengthen_the_time() -> None:
    speed = Speed(step_s=0.01, spread=0.0, slow_above_tokens=100, slow_factor=10.0, age_factor=0.5)
    assert _steps(speed, None, 3, context=10)[1].seconds == pytest.approx(0.01)
    assert _steps(speed, None, 3, context=200)[1].seconds == pytest.approx(0.1)
    assert _steps(speed, None, 3, answered=2)[1].seconds == pytest.approx(0.02)
    assert prefill_s(Speed(overhead_s=0.5, prefill_tok_s=100.0), 200) == pytest.approx(2.5)
