"""Least squares against NIST's certified values, and on ramps with a known cost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.regression import least_squares

# NIST Statistical Reference Datasets, Norris (linear regression, lower difficulty): y and x.
NORRIS = (
    "0.1 0.2 338.8 337.4 118.1 118.2 888.0 884.6 9.2 10.1 228.1 226.5 668.5 666.3 998.5 996.3 449.1 448.6 778.9 777.0 "
    "559.2 558.2 0.3 0.4 0.1 0.6 778.1 775.5 668.8 666.9 339.3 338.0 448.9 447.5 10.8 11.6 557.7 556.0 228.3 228.1 "
    "998.0 995.8 888.8 887.6 119.6 120.2 0.3 0.3 0.6 0.3 557.6 556.8 339.3 339.1 888.0 887.2 998.5 999.0 778.9 779.0 "
    "10.2 11.1 117.6 118.3 228.9 229.2 668.4 669.1 449.2 448.9 0.2 0.5"
)


def test_norris_is_fitted_to_the_certified_digits() -> None:
    numbers = [float(word) for word in NORRIS.split()]
    found = least_squares({"x": numbers[1::2]}, numbers[0::2])
    assert found.coefficients["intercept"].value == pytest.approx(-0.262323073774029, rel=1e-10)
    assert found.coefficients["x"].value == pytest.approx(1.00211681802045, rel=1e-12)
    assert found.coefficients["intercept"].error == pytest.approx(0.232818234301152, rel=1e-10)
    assert found.coefficients["x"].error == pytest.approx(0.429796848199937e-03, rel=1e-10)
    assert found.residual == pytest.approx(0.884796396144373, rel=1e-10)
    assert found.r_squared == pytest.approx(0.999993745883712, rel=1e-12)


@given(st.floats(-10, 10), st.floats(-5, 5), st.floats(-5, 5))
def test_an_exact_plane_is_found(intercept: float, first: float, second: float) -> None:
    a, b = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 0.0, 2.0, 5.0, 1.0, 3.0]
    y = [intercept + first * left + second * right for left, right in zip(a, b, strict=True)]
    found = least_squares({"a": a, "b": b}, y)
    assert found.coefficients["a"].value == pytest.approx(first, abs=1e-9)
    assert found.coefficients["b"].value == pytest.approx(second, abs=1e-9)
    assert found.coefficients["intercept"].value == pytest.approx(intercept, abs=1e-9)


def ramp(generator: np.random.Generator, *, reuses_cache: bool) -> tuple[dict[str, list[float]], list[float]]:
    """Twelve turns: what is new, what there is in all, and a first token that costs 1 ms a token it must read."""
    new = generator.uniform(300, 6000, 12)
    total = np.cumsum(new + 150)
    read = new if reuses_cache else total
    return {"new": new.tolist(), "total": total.tolist()}, (0.2 + 1e-3 * read + generator.normal(0, 0.05, 12)).tolist()


@pytest.mark.parametrize("reuses_cache", [True, False])
def test_a_ramp_shows_which_tokens_are_paid_for(reuses_cache: bool) -> None:
    found = least_squares(*ramp(np.random.default_rng(2), reuses_cache=reuses_cache))
    paid, free = ("new", "total") if reuses_cache else ("total", "new")
    assert found.coefficients[paid].low > 0.9e-3
    assert found.coefficients[free].low < 0 < found.coefficients[free].high


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    generator = np.random.default_rng(6)
    held = 0
    for _ in range(400):
        found = least_squares(*ramp(generator, reuses_cache=True)).coefficients["new"]
        held += found.low <= 1e-3 <= found.high
    assert held / 400 >= 0.95 - 0.022


def test_costs_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be told apart"):
        least_squares({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, 4.0, 6.0, 8.0]}, [1.0, 2.0, 2.5, 4.0])
    with pytest.raises(ValueError, match="cannot be told apart"):
        least_squares({"a": [1.0, 1.0, 1.0, 1.0]}, [1.0, 2.0, 2.5, 4.0])
    with pytest.raises(ValueError, match="do not determine"):
        least_squares({"a": [1.0, 2.0]}, [1.0, 2.0])
