"""Means, ratios and proportions with their intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.interval import estimate_mean, estimate_ratio, wilson_interval

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def test_mean_of_a_published_sample() -> None:
    # Student's sleep data, first group: mean 0.75, 95 % interval -0.5297804 to 2.0297804 (R's t.test).
    found = estimate_mean([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0])
    assert found.mean == pytest.approx(0.75)
    assert (found.low, found.high) == pytest.approx((-0.5297804, 2.0297804), abs=1e-6)


# Newcombe, Stat. Med. 17, 1998, table I, method 3.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_is_that_of_the_table(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=1e-4)


@given(VALUES)
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    found = estimate_mean(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.mean <= found.high


@given(VALUES)
def test_more_confidence_takes_more_room(values: list[float]) -> None:
    wide, narrow = estimate_mean(values, alpha=0.01).half_width, estimate_mean(values, alpha=0.1).half_width
    assert wide is not None
    assert narrow is not None
    assert wide >= narrow


@given(st.lists(st.floats(0.1, 1e4), min_size=2, max_size=20), st.floats(0.1, 10))
def test_a_constant_ratio_is_found(denominators: list[float], ratio: float) -> None:
    found = estimate_ratio([value * ratio for value in denominators], denominators)
    assert found.mean == pytest.approx(ratio)
    assert found.half_width == pytest.approx(0, abs=1e-6 * ratio)


def test_one_value_has_no_interval() -> None:
    found = estimate_mean([3.0])
    assert (found.mean, found.half_width) == (3.0, None)


@given(st.integers(1, 500), st.data())
def test_a_share_lies_in_its_interval(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = wilson_interval(successes, trials)
    assert low - 1e-12 <= successes / trials <= high + 1e-12
    assert math.isclose(wilson_interval(trials - successes, trials)[0], 1 - high, abs_tol=1e-12)


def test_nothing_is_no_sample() -> None:
    with pytest.raises(ValueError, match="at least one"):
        estimate_mean([])
    with pytest.raises(ValueError, match="positive"):
        estimate_ratio([1.0], [0.0])
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(1, 0)
