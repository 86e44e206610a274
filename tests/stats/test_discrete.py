"""Chi-square for outcomes: published tables, pooling, and how often equal samples are called different."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.discrete import alike, fits

COUNTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 200), min_size=1).filter(
    lambda counts: sum(counts.values()) > 0
)


def test_mendels_peas() -> None:
    counts = {"round yellow": 315, "wrinkled yellow": 101, "round green": 108, "wrinkled green": 32}
    shares = {"round yellow": 9 / 16, "wrinkled yellow": 3 / 16, "round green": 3 / 16, "wrinkled green": 1 / 16}
    found = fits(counts, shares)
    assert found.statistic == pytest.approx(0.470, abs=5e-4)
    assert found.p_value == pytest.approx(0.9254, abs=5e-4)
    assert found.degrees == 3


def test_a_two_by_two_table() -> None:
    # 43 and 9 of 52 against 44 and 4 of 48: Pearson's statistic 1.777 without correction.
    found = alike({"right": 43, "left": 9}, {"right": 44, "left": 4})
    assert found.statistic == pytest.approx(1.7774, abs=1e-3)
    assert found.p_value == pytest.approx(0.1825, abs=1e-3)


@given(COUNTS, COUNTS)
def test_the_order_of_the_samples_does_not_matter(counts_a: dict[str, int], counts_b: dict[str, int]) -> None:
    there, back = alike(counts_a, counts_b), alike(counts_b, counts_a)
    assert back.statistic == pytest.approx(there.statistic)
    assert back.categories == there.categories
    assert 0 <= there.distance <= 1 + 1e-12
    assert there.p_value is None or 0 <= there.p_value <= 1


@given(COUNTS)
def test_a_sample_is_alike_itself(counts: dict[str, int]) -> None:
    found = alike(counts, counts)
    assert found.statistic == pytest.approx(0, abs=1e-9)
    assert found.distance == 0


def test_rare_outcomes_are_pooled_and_counted() -> None:
    found = alike({"a": 100, "b": 90, "c": 1, "d": 2, "e": 4}, {"a": 95, "b": 99, "f": 3, "e": 5})
    assert found.pooled == 4  # c, d, f and, for company, e
    assert found.categories == 3
    assert found.degrees == 2


def test_only_rare_outcomes_leave_nothing_to_test() -> None:
    assert alike({"a": 1, "b": 1}, {"c": 2}).p_value is None


def test_disjoint_samples_are_far_apart() -> None:
    found = alike({"a": 50}, {"b": 50})
    assert found.distance == 1
    assert found.p_value is not None
    assert found.p_value < 1e-6


def drawn(generator: np.random.Generator, shares: list[float], size: int) -> Counter[int]:
    return Counter(generator.choice(len(shares), size=size, p=shares).tolist())


def test_equal_samples_are_rarely_called_different() -> None:
    generator = np.random.default_rng(9)
    shares = (np.arange(1, 41) ** -1.0 / (np.arange(1, 41) ** -1.0).sum()).tolist()
    p_values = [alike(drawn(generator, shares, 300), drawn(generator, shares, 300)).p_value for _ in range(1000)]
    assert sum(1 for value in p_values if value is not None and value < 0.05) <= 64


def test_a_shifted_sample_is_found() -> None:
    generator = np.random.default_rng(10)
    found = [
        alike(drawn(generator, [0.5, 0.3, 0.2], 500), drawn(generator, [0.4, 0.35, 0.25], 500)).p_value
        for _ in range(200)
    ]
    assert sum(1 for value in found if value is not None and value < 0.05) >= 150


def test_what_needs_no_test_is_said() -> None:
    with pytest.raises(ValueError, match="'z' came up"):
        fits({"a": 5, "z": 1}, {"a": 1.0})
    with pytest.raises(ValueError, match="two samples"):
        alike({"a": 1}, {})
