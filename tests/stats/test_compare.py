"""Verdicts between arms: their algebra, and how often they are right on experiments with a known truth."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from redline.stats.boots import Boot
from redline.stats.compare import Comparison, Verdict, compare_arms, welch
from redline.stats.power import BootSpread, power_of
from redline.stats.simulate import ArmModel, draw_arm

MEANS = st.lists(st.floats(1, 1000), min_size=3, max_size=6)


def arm(name: str, means: list[float]) -> list[Boot]:
    return [Boot(f"{name}{index}", (mean,)) for index, mean in enumerate(means)]


def compared(means_a: list[float], means_b: list[float], *, higher_is_better: bool = True) -> Comparison:
    return compare_arms(arm("a", means_a), arm("b", means_b), higher_is_better=higher_is_better)


def test_welch_on_a_published_example() -> None:
    # Student's sleep data (Biometrika 6, 1908), as in the manual of R's t.test: t 1.8608, 17.776 degrees of freedom.
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    found = welch(first, second)
    assert found is not None
    assert found.difference / found.error == pytest.approx(1.8608, abs=1e-4)
    assert found.degrees == pytest.approx(17.776, abs=1e-3)
    low, high = found.bounds(0.05)
    assert (low, high) == pytest.approx((-0.2054832, 3.3654832), abs=1e-6)


@pytest.mark.parametrize(
    ("means_a", "means_b", "verdict"),
    [
        ([100, 101, 99], [120, 121, 119], Verdict.FASTER),
        ([120, 121, 119], [100, 101, 99], Verdict.SLOWER),
        ([100, 100.3, 99.8], [100.2, 99.9, 100.4], Verdict.EQUIVALENT),
        ([100, 120, 80], [105, 85, 125], Verdict.UNDETERMINED),
        ([100, 101], [150, 151], Verdict.UNDETERMINED),
        ([100, 100, 100], [150, 150, 150], Verdict.UNDETERMINED),
    ],
)
def test_verdicts(means_a: list[float], means_b: list[float], verdict: Verdict) -> None:
    assert compared(means_a, means_b).verdict is verdict


def test_a_small_difference_that_is_certain_is_still_equivalent() -> None:
    found = compared([100.0, 100.1, 99.9], [101.0, 101.1, 100.9])
    assert found.p_value is not None
    assert found.p_value < 0.05
    assert found.verdict is Verdict.EQUIVALENT
    assert found.equivalence_p is not None
    assert found.equivalence_p < 0.05


def test_times_are_better_when_lower() -> None:
    assert compared([2.0, 2.1, 1.9], [1.0, 1.05, 0.95], higher_is_better=False).verdict is Verdict.FASTER


@given(MEANS, MEANS)
def test_swapping_the_arms_swaps_the_verdict(means_a: list[float], means_b: list[float]) -> None:
    swapped = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    there, back = compared(means_a, means_b), compared(means_b, means_a)
    assert back.verdict is swapped.get(there.verdict, there.verdict)
    assert back.ratio == pytest.approx(1 / there.ratio)
    if there.low is not None and there.high is not None:
        assert back.high == pytest.approx(1 / there.low)
        assert back.low == pytest.approx(1 / there.high)


@given(MEANS, MEANS, st.floats(0.01, 100))
def test_a_change_of_unit_changes_nothing(means_a: list[float], means_b: list[float], unit: float) -> None:
    plain = compared(means_a, means_b)
    other = compared([mean * unit for mean in means_a], [mean * unit for mean in means_b])
    assume(plain.p_value is not None and abs(plain.p_value - 0.05) > 1e-6)
    assume(plain.equivalence_p is not None and abs(plain.equivalence_p - 0.05) > 1e-6)
    assert other.verdict is plain.verdict
    assert other.ratio == pytest.approx(plain.ratio)


@given(st.lists(st.floats(1, 1000), min_size=1, max_size=2), MEANS)
def test_under_three_boots_nothing_is_determined(few: list[float], many: list[float]) -> None:
    for found in (compared(few, many), compared(many, few)):
        assert found.verdict is Verdict.UNDETERMINED
        assert found.low is None
        assert "3" in found.reason


@given(MEANS, MEANS)
def test_a_verdict_agrees_with_its_interval(means_a: list[float], means_b: list[float]) -> None:
    found = compared(means_a, means_b)
    if found.verdict is Verdict.FASTER:
        assert found.low is not None
        assert found.low > 1
    if found.verdict is Verdict.EQUIVALENT:
        assert abs(math.log(found.ratio)) < math.log1p(found.margin)


def test_a_boot_cannot_stand_in_both_arms() -> None:
    boots = arm("a", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="twice"):
        compare_arms(boots, boots, higher_is_better=True)


def outcomes(ratio: float, boots: int, experiments: int, model: ArmModel, seed: int) -> Counter[Verdict]:
    generator = np.random.default_rng(seed)
    second = ArmModel(mean=model.mean * ratio, between_cv=model.between_cv, within_cv=model.within_cv)
    found: Counter[Verdict] = Counter()
    for _ in range(experiments):
        arms = [
            draw_arm(side, generator, boots=boots, runs=6, name=name) for side, name in ((model, "a"), (second, "b"))
        ]
        found[compare_arms(*arms, higher_is_better=True).verdict] += 1
    return found


@pytest.mark.parametrize("boots", [3, 5, 10])
def test_equal_arms_are_rarely_called_different(boots: int) -> None:
    # 400 experiments: 5 % of them plus two standard errors (1.1 points each) are 29. docs/statistics.md has 1,000.
    found = outcomes(1.0, boots, 400, ArmModel(), seed=boots)
    assert found[Verdict.FASTER] + found[Verdict.SLOWER] <= 29


@pytest.mark.parametrize(("ratio", "boots"), [(1.05, 5), (1.05, 10), (1.10, 3), (1.10, 5), (0.90, 5)])
def test_injected_differences_are_found_with_the_stated_power(ratio: float, boots: int) -> None:
    model = ArmModel()
    found = outcomes(ratio, boots, 400, model, seed=boots)
    stated = power_of(ratio - 1, BootSpread(model.between_cv, model.within_cv, 6).mean_cv, boots)
    right = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    error = math.sqrt(stated * (1 - stated) / 400)
    assert found[right] / 400 == pytest.approx(stated, abs=3 * error + 0.005)


def test_equal_and_quiet_arms_are_found_equivalent() -> None:
    found = outcomes(1.0, 5, 200, ArmModel(between_cv=0.01, within_cv=0.01), seed=1)
    assert found[Verdict.EQUIVALENT] > 180


def test_arms_at_the_margin_are_rarely_called_equivalent() -> None:
    found = outcomes(1.03, 5, 400, ArmModel(between_cv=0.01, within_cv=0.01), seed=2)
    assert found[Verdict.EQUIVALENT] <= 29
