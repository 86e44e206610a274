import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.interval import estimate_mean, estimate_ratio, t_quantile, wilson_interval


@pytest.mark.parametrize(
    ("degrees", "value"),
    [(1, 12.7062), (2, 4.3027), (4, 2.7764), (5, 2.5706), (9, 2.2622), (29, 2.0452), (1000, 1.9623)],
)
def test_t_quantiles_are_those_of_the_tables(degrees: int, value: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(value, abs=5e-5)


def test_the_seeds_own_runs_get_the_interval_they_deserve() -> None:
    # Decode runs published with the dflash15 profile: 90.3 tok/s narrative is +-9.8 %, 157.4 code is +-13.7 %.
    narrative = estimate_mean([96.01, 81.09, 97.25, 84.47, 92.46])
    code = estimate_mean([126.99, 165.62, 165.31, 169.88, 159.02])
    assert narrative.half_width is not None
    assert code.half_width is not None
    assert narrative.mean == pytest.approx(90.256, abs=0.01)
    assert narrative.half_width / narrative.mean == pytest.approx(0.098, abs=0.001)
    assert code.half_width / code.mean == pytest.approx(0.137, abs=0.001)


def test_one_value_has_no_interval() -> None:
    estimate = estimate_mean([5.0])
    assert (estimate.mean, estimate.low, estimate.half_width) == (5.0, None, None)


def test_no_values_are_no_estimate() -> None:
    with pytest.raises(ValueError, match="at least one"):
        estimate_mean([])


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = random.Random(7)
    hits = 0
    for _ in range(2000):
        estimate = estimate_mean([rng.gauss(100, 8) for _ in range(6)])
        assert estimate.low is not None
        assert estimate.high is not None
        hits += estimate.low <= 100 <= estimate.high
    assert 0.935 <= hits / 2000 <= 0.965


@given(st.lists(st.floats(1, 1e4), min_size=2, max_size=12), st.floats(0.1, 10))
def test_scaling_one_arm_scales_the_ratio(values: list[float], factor: float) -> None:
    estimate = estimate_ratio([value * factor for value in values], values)
    assert estimate.mean == pytest.approx(factor, rel=1e-9)
    assert estimate.low == pytest.approx(factor, rel=1e-6)


def test_ratios_refuse_what_is_no_rate() -> None:
    with pytest.raises(ValueError, match="positive"):
        estimate_ratio([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="as many"):
        estimate_ratio([1.0], [1.0, 1.0])


def test_wilson_is_the_textbook_interval() -> None:
    low, high = wilson_interval(8, 10)
    assert low == pytest.approx(0.4902, abs=1e-4)
    assert high == pytest.approx(0.9433, abs=1e-4)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_share_and_stays_within_bounds(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = wilson_interval(successes, trials)
    assert 0 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1
    assert not math.isnan(low + high)
