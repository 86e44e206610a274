"""Retention of a rate over a soak: disjoint thirds, three verdicts, shapes together and apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.retention import RetentionVerdict, retention, retention_over_shapes


def series(fall: float, sessions: int, cv: float, seed: int) -> list[float]:
    generator = np.random.default_rng(seed)
    level = 100 * np.linspace(1, 1 - fall, sessions)
    return [float(value) for value in level * np.exp(generator.normal(0, cv, sessions))]


def test_a_steady_rate_is_retained() -> None:
    found = retention(series(0.0, 15, 0.01, 1), floor=0.95)
    assert found.verdict is RetentionVerdict.RETAINED
    assert found.an_end == 5


def test_a_rate_that_halves_fell_even_in_a_short_soak() -> None:
    found = retention(series(0.5, 9, 0.01, 1), floor=0.9)
    assert found.verdict is RetentionVerdict.FELL
    assert found.ratio == pytest.approx((0.5 + 0.0625) / (1 - 0.0625), rel=0.05)


def test_noise_too_large_to_tell_is_undetermined() -> None:
    assert retention(series(0.0, 9, 0.3, 1), floor=0.95).verdict is RetentionVerdict.UNDETERMINED


@given(st.lists(st.floats(1, 100), max_size=8))
def test_under_nine_sessions_nothing_is_determined(values: list[float]) -> None:
    found = retention(values, floor=0.8)
    assert found.verdict is RetentionVerdict.UNDETERMINED
    assert found.low is None


@given(st.lists(st.floats(1, 100), min_size=9, max_size=30), st.floats(0.01, 50))
def test_the_ends_never_overlap_and_the_unit_does_not_matter(values: list[float], unit: float) -> None:
    plain, other = retention(values, floor=0.8), retention([value * unit for value in values], floor=0.8)
    assert 2 * plain.an_end < len(values)
    assert other.ratio == pytest.approx(plain.ratio)


def test_shapes_of_different_speed_count_alike() -> None:
    shapes = {"chat": series(0.2, 12, 0.01, 1), "tools": [value / 40 for value in series(0.2, 12, 0.01, 2)]}
    together, each = retention_over_shapes(shapes, floor=0.95)
    assert together.verdict is RetentionVerdict.FELL
    assert together.ratio == pytest.approx((each["chat"].ratio or 0) ** 0.5 * (each["tools"].ratio or 0) ** 0.5)


def test_how_often_a_steady_soak_is_failed() -> None:
    found = [retention(series(0.0, 15, 0.03, seed), floor=0.98).verdict for seed in range(300)]
    assert found.count(RetentionVerdict.FELL) <= 9


def test_what_is_no_series_of_rates_is_refused() -> None:
    with pytest.raises(ValueError, match="positive rates"):
        retention([1.0, 0.0], floor=0.9)
    with pytest.raises(ValueError, match="one rate a session"):
        retention_over_shapes({"a": [1.0], "b": [1.0, 2.0]}, floor=0.9)
    with pytest.raises(ValueError, match="between 0 and 1"):
        retention([1.0] * 9, floor=1.5)
