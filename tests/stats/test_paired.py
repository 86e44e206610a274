"""Paired right-or-wrong answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.paired import compare_answers, mcnemar

COUNT = st.integers(0, 60)


def test_exact_p_values_reckoned_by_hand() -> None:
    # Twelve pairs differ, two of them one way: 2 * (1 + 12 + 66) / 4096.
    assert mcnemar(both=80, only_a=2, only_b=10, neither=8).p_value == pytest.approx(2 * 79 / 4096)
    assert mcnemar(both=5, only_a=0, only_b=0, neither=5).p_value == 1.0
    assert mcnemar(both=0, only_a=3, only_b=3, neither=0).p_value == 1.0


def test_the_interval_of_a_published_example() -> None:
    # Bonett and Price 2012 with the counts of Agresti, Categorical Data Analysis, table 10.1 (performance of a prime
    # minister): 794, 150, 86, 570. By their formula -0.040 -+ 0.019.
    found = mcnemar(both=794, only_a=150, only_b=86, neither=570)
    assert found.difference == pytest.approx(-0.04)
    assert (found.low, found.high) == pytest.approx((-0.0588, -0.0211), abs=2e-4)


@given(COUNT, COUNT, COUNT, COUNT)
def test_swapping_the_arms_mirrors_all(both: int, only_a: int, only_b: int, neither: int) -> None:
    if both + only_a + only_b + neither == 0:
        return
    there = mcnemar(both=both, only_a=only_a, only_b=only_b, neither=neither)
    back = mcnemar(both=both, only_a=only_b, only_b=only_a, neither=neither)
    assert back.p_value == there.p_value
    assert back.difference == -there.difference
    assert back.low == pytest.approx(-there.high)


def test_110_against_109_of_150_says_nothing() -> None:
    found = mcnemar(both=100, only_a=10, only_b=9, neither=31)
    assert found.p_value == 1.0
    assert found.low < 0 < found.high


def test_equal_arms_are_rarely_called_different() -> None:
    generator = np.random.default_rng(3)
    alarms = missed = 0
    for _ in range(1000):
        both, only_a, only_b, neither = (int(count) for count in generator.multinomial(100, [0.6, 0.1, 0.1, 0.2]))
        found = mcnemar(both=both, only_a=only_a, only_b=only_b, neither=neither)
        alarms += found.p_value <= 0.05
        missed += not found.low <= 0 <= found.high
    assert alarms <= 64
    assert missed <= 64


def test_answers_are_matched_by_question() -> None:
    found = compare_answers({"x": True, "y": False, "z": True}, {"z": True, "x": False, "y": True})
    assert (found.both, found.only_a, found.only_b, found.neither) == (1, 1, 1, 0)
    with pytest.raises(ValueError, match="same questions"):
        compare_answers({"x": True}, {"y": True})
    with pytest.raises(ValueError, match="needs questions"):
        compare_answers({}, {})
