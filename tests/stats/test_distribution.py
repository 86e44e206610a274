"""Distribution functions against published tables and against what must hold everywhere."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.distribution import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    chi_square_sf,
    kendall_counts,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
)


# NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2.
@pytest.mark.parametrize(
    ("probability", "degrees", "table"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.95, 5, 2.015),
        (0.995, 3, 5.841),
        (0.999, 20, 3.552),
    ],
)
def test_t_quantile_is_that_of_the_table(probability: float, degrees: float, table: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(table, abs=5e-4)


# NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.4.
@pytest.mark.parametrize(
    ("tail", "degrees", "table"), [(0.05, 1, 3.841), (0.05, 5, 11.070), (0.05, 10, 18.307), (0.01, 3, 11.345)]
)
def test_chi_square_tail_is_that_of_the_table(tail: float, degrees: int, table: float) -> None:
    assert chi_square_sf(table, degrees) == pytest.approx(tail, rel=1e-3)


# Upper tails of Kendall's S: Hollander, Wolfe, Nonparametric Statistical Methods, table A.30.
@pytest.mark.parametrize(
    ("n", "s", "tail"), [(4, 6, 0.042), (4, 4, 0.167), (5, 8, 0.042), (6, 11, 0.028), (8, 18, 0.016), (10, 23, 0.023)]
)
def test_kendall_counts_give_the_table_of_s(n: int, s: int, tail: float) -> None:
    falls = (n * (n - 1) // 2 - s) // 2
    assert sum(kendall_counts(n)[: falls + 1]) / math.factorial(n) == pytest.approx(tail, abs=5e-4)


def test_normal_quantiles() -> None:
    assert normal_quantile(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert normal_cdf(1.6448536) == pytest.approx(0.95, abs=1e-7)


@given(st.floats(0.001, 0.999), st.floats(0.3, 500))
def test_t_quantile_undoes_t_cdf(probability: float, degrees: float) -> None:
    assert t_cdf(t_quantile(probability, degrees), degrees) == pytest.approx(probability, abs=1e-9)


@given(st.floats(0.001, 0.999), st.floats(0.5, 80), st.floats(0.5, 80))
def test_beta_quantile_undoes_beta_cdf(probability: float, a: float, b: float) -> None:
    assert beta_cdf(beta_quantile(probability, a, b), a, b) == pytest.approx(probability, abs=1e-9)


@given(st.integers(0, 40), st.integers(1, 40), st.floats(0.01, 0.99))
def test_binomial_cdf_is_the_sum_of_its_terms(successes: int, trials: int, share: float) -> None:
    terms = (math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(min(successes, trials) + 1))
    assert binomial_cdf(successes, trials, share) == pytest.approx(sum(terms), abs=1e-10)


@given(st.floats(0.01, 300), st.integers(1, 200))
def test_chi_square_tail_falls_with_the_value(value: float, degrees: int) -> None:
    assert 0 <= chi_square_sf(value * 1.01, degrees) <= chi_square_sf(value, degrees) <= 1


@given(st.floats(0.01, 60))
def test_chi_square_of_two_degrees_is_exponential(value: float) -> None:
    assert chi_square_sf(value, 2) == pytest.approx(math.exp(-value / 2), rel=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1])
def test_impossible_probabilities_are_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(probability, 3)
