"""Bounds of failure rates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.distribution import binomial_cdf
from redline.stats.failures import clopper_pearson, failure_rate, rule_of_three, tries_to_bound


# Newcombe, Stat. Med. 17, 1998, table I, method 5 (Clopper-Pearson).
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_exact_interval_is_that_of_the_table(successes: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(successes, trials) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 2000), st.data())
def test_at_the_bound_so_few_failures_have_the_chance_alpha(tries: int, data: st.DataObject) -> None:
    failures = data.draw(st.integers(0, tries - 1))
    found = failure_rate(failures, tries)
    assert found.seen < found.upper < 1
    assert binomial_cdf(failures, tries, found.upper) == pytest.approx(0.05, abs=1e-6)


@given(st.integers(30, 5000))
def test_the_rule_of_three_is_close_to_the_exact_bound_and_above_it(tries: int) -> None:
    exact = failure_rate(0, tries).upper
    assert exact < rule_of_three(tries) < exact * 1.06


def test_nothing_failed_in_thirty_tries() -> None:
    assert failure_rate(0, 30).upper == pytest.approx(0.0950, abs=1e-4)
    assert rule_of_three(30) == pytest.approx(0.1)
    assert failure_rate(5, 5).upper == 1.0


@given(st.floats(0.0005, 0.9))
def test_so_many_tries_bound_the_rate_and_one_less_does_not(rate: float) -> None:
    tries = tries_to_bound(rate)
    assert failure_rate(0, tries).upper <= rate * (1 + 1e-6)
    if tries > 1:
        assert failure_rate(0, tries - 1).upper > rate * (1 - 1e-6)


def test_tries_for_one_percent() -> None:
    assert tries_to_bound(0.01) == 299


@pytest.mark.parametrize(("failures", "tries"), [(1, 0), (-1, 3), (4, 3)])
def test_what_is_no_proportion_is_refused(failures: int, tries: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        failure_rate(failures, tries)
