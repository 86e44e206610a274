"""Bootstrap intervals for display: what they cover, and why no verdict rests on them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.stats.bootstrap import BootstrapMethod, Statistic, bootstrap

VALUES = st.lists(st.floats(0.1, 1e4), min_size=5, max_size=25)


@settings(max_examples=40, deadline=None)
@given(VALUES, st.sampled_from(Statistic), st.sampled_from(BootstrapMethod))
def test_bounds_lie_within_the_values_and_in_order(
    values: list[float], statistic: Statistic, method: BootstrapMethod
) -> None:
    found = bootstrap(values, statistic, method=method, resamples=300)
    assert found.low is not None
    assert found.high is not None
    slack = 1e-9 * max(values)
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack


@settings(max_examples=20, deadline=None)
@given(VALUES)
def test_a_seed_fixes_the_interval(values: list[float]) -> None:
    assert bootstrap(values, seed=7, resamples=200) == bootstrap(values, seed=7, resamples=200)


def test_the_percentile_bootstrap_of_a_mean_has_its_known_spread() -> None:
    values = np.random.default_rng(1).normal(100, 10, 400).tolist()
    found = bootstrap(values, Statistic.MEAN, method=BootstrapMethod.PERCENTILE)
    half = 1.96 * float(np.std(values)) / 20
    assert found.low == pytest.approx(found.point - half, abs=0.05 * half)
    assert found.high == pytest.approx(found.point + half, abs=0.05 * half)


def test_skew_moves_bca_towards_the_tail() -> None:
    values = np.random.default_rng(2).exponential(1.0, 40).tolist()
    plain = bootstrap(values, Statistic.MEAN, method=BootstrapMethod.PERCENTILE)
    corrected = bootstrap(values, Statistic.MEAN, method=BootstrapMethod.BCA)
    assert plain.low is not None
    assert plain.high is not None
    assert corrected.low is not None
    assert corrected.high is not None
    assert corrected.low > plain.low
    assert corrected.high > plain.high


@pytest.mark.parametrize("method", list(BootstrapMethod))
def test_medians_of_twenty_runs_are_covered(method: BootstrapMethod) -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        found = bootstrap(generator.lognormal(0, 0.2, 20).tolist(), Statistic.MEDIAN, method=method, resamples=400)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1 <= found.high
    assert 180 <= covered <= 199


def test_few_values_have_no_interval() -> None:
    found = bootstrap([1.0, 2.0, 3.0, 4.0])
    assert (found.point, found.low, found.high) == (2.5, None, None)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = bootstrap([2.0] * 8)
    assert (found.low, found.high) == (2.0, 2.0)


def test_nothing_is_no_sample() -> None:
    with pytest.raises(ValueError, match="at least one"):
        bootstrap([])
