"""When to stop: the limits, and that the interval at the stop keeps its promise although it was looked at often."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.interval import estimate_mean
from redline.stats.stopping import StopDecision, StoppingRule, StopState


def ended(rule: StoppingRule, values: list[float]) -> tuple[int, StopDecision]:
    for count in range(1, len(values) + 1):
        decision = rule.decide(values[:count])
        if decision.state is not StopState.GO_ON:
            return count, decision
    raise AssertionError("it never ended")


@given(st.lists(st.floats(1, 1000), min_size=20, max_size=20), st.floats(0.001, 0.5))
def test_it_ends_between_the_limits(values: list[float], width: float) -> None:
    count, decision = ended(StoppingRule(relative_width=width), values)
    assert 5 <= count <= 20
    assert decision.relative_width is not None
    if decision.state is StopState.REACHED:
        assert decision.relative_width <= width
    else:
        assert count == 20


def test_steady_runs_end_at_five_and_wild_ones_at_twenty() -> None:
    rule = StoppingRule(relative_width=0.01)
    assert ended(rule, [100.0, 100.1] * 10)[0] == 5
    count, decision = ended(rule, [100.0, 150.0] * 10)
    assert (count, decision.state) == (20, StopState.EXHAUSTED)


def coverage(width_in_spreads: float, *, plain: bool) -> float:
    generator, rule = np.random.default_rng(11), StoppingRule(relative_width=0.02 * width_in_spreads)
    held = 0
    for _ in range(600):
        values = generator.normal(100, 2, 20).tolist()
        estimate = None
        for count in range(5, 21):
            estimate = estimate_mean(values[:count]) if plain else rule.decide(values[:count]).estimate
            assert estimate is not None
            assert estimate.half_width is not None
            if estimate.half_width <= rule.relative_width * estimate.mean:
                break
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        held += estimate.low <= 100 <= estimate.high
    return held / 600


def test_the_interval_at_the_stop_holds_the_truth_where_a_plain_one_would_not() -> None:
    # Half a run's spread is where looking costs most; 1.8 points are two standard errors of 600 experiments.
    assert coverage(0.5, plain=False) >= 0.95 - 0.018
    assert coverage(0.5, plain=True) <= 0.945


@pytest.mark.parametrize("limits", [(4, 20), (5, 21), (12, 10)])
def test_limits_that_were_not_calibrated_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="calibrated"):
        StoppingRule(min_runs=limits[0], max_runs=limits[1])


def test_one_run_says_nothing() -> None:
    assert StoppingRule().decide([1.0]) == StopDecision(state=StopState.GO_ON, estimate=None, relative_width=None)
