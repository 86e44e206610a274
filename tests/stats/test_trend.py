"""Slopes and trend tests: against all pairs reckoned plainly, published tables, and simulation."""

from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.distribution import normal_cdf
from redline.stats.trend import mann_kendall, theil_sen

LEVELS = st.lists(st.integers(-1000, 1000), min_size=2, max_size=25)
DISTINCT = st.lists(st.integers(-10_000, 10_000), min_size=5, max_size=20, unique=True)


@given(LEVELS)
def test_the_slope_is_the_median_of_all_pairs(levels: list[int]) -> None:
    plain = median((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(levels), 2))
    found = theil_sen(range(len(levels)), levels)
    assert found.value == plain
    if found.low is not None and found.high is not None:
        assert found.low <= plain <= found.high


def test_the_slope_of_sens_example() -> None:
    # P. K. Sen, JASA 63, 1968, section 7: the estimate is 4.
    assert theil_sen([1, 2, 3, 4, 10, 12, 18], [9, 15, 19, 20, 45, 55, 78]).value == 4.0


def test_the_interval_reads_the_ranks_of_the_exact_table() -> None:
    # Seven points: S >= 15 has the tail 0.015 (table A.30 of Hollander and Wolfe), so 4th and 18th of 21 slopes.
    x, y = [1, 2, 3, 4, 10, 12, 18], [9, 15, 19, 20, 45, 55, 78]
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(zip(x, y, strict=True), 2))
    found = theil_sen(x, y)
    assert (found.low, found.high) == (slopes[3], slopes[17])


def test_too_few_points_have_no_interval() -> None:
    assert theil_sen([0, 1, 2, 3], [1.0, 2.0, 4.0, 7.0]).low is None


@given(DISTINCT, st.integers(-50, 50), st.integers(1, 20))
def test_a_slope_added_is_a_slope_found(levels: list[int], extra: int, scale: int) -> None:
    x = range(len(levels))
    plain = theil_sen(x, levels)
    other = theil_sen(x, [scale * level + extra * index for index, level in enumerate(levels)])
    assert other.value == pytest.approx(scale * plain.value + extra)


@given(DISTINCT)
def test_the_test_of_a_mirrored_series_is_mirrored(levels: list[int]) -> None:
    there, back = mann_kendall(levels), mann_kendall(levels[::-1])
    assert back.s == -there.s
    assert back.p_value == there.p_value
    assert back.tau == pytest.approx(-there.tau)


@pytest.mark.parametrize(
    ("levels", "s", "p_value"),
    [([1, 2, 3, 4, 5], 10, 2 / 120), ([1, 2, 3, 5, 4], 8, 2 * 5 / 120), ([1, 1, 1, 1, 1], 0, 1.0)],
)
def test_exact_p_values(levels: list[float], s: int, p_value: float) -> None:
    found = mann_kendall(levels)
    assert found.s == s
    assert found.p_value == pytest.approx(p_value)


def test_ties_widen_the_variance_as_published() -> None:
    # Kendall 1975: n(n-1)(2n+5) less t(t-1)(2t+5) for each tie, over 18: (10*9*25 - 3*2*11 - 2*1*9) / 18 = 120.33.
    levels = [10.0, 10.0, 10.0, 12.0, 12.0, 15.0, 17.0, 19.0, 14.0, 21.0]
    found = mann_kendall(levels)
    z = (abs(found.s) - 1) / 120.3333**0.5
    assert found.p_value == pytest.approx(2 * (1 - normal_cdf(z)), rel=1e-4)


def test_one_wild_session_does_not_move_the_slope() -> None:
    levels = [20.0 * index for index in range(12)]
    levels[5] = 1e6
    assert theil_sen(range(12), levels).value == pytest.approx(20.0, abs=1e-9)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        found = theil_sen(range(12), (generator.normal(0, 50, 12) + 20 * np.arange(12)).tolist())
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 20 <= found.high
    assert held / 400 >= 0.95 - 0.022


def test_series_without_a_trend_to_ask_for_are_refused() -> None:
    with pytest.raises(ValueError, match="two distinct"):
        theil_sen([1, 1], [1, 2])
    with pytest.raises(ValueError, match="three values"):
        mann_kendall([1, 2])
