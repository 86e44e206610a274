"""Plans for a stated power: against Cohen's tables, and against what must hold."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.stats.power import BootSpread, difference_seen, per_arm_needed, power_of


# Cohen, Statistical Power Analysis, 1988, table 2.4.1 with the exact values of G*Power 3 (Faul et al. 2007).
@pytest.mark.parametrize(("effect", "per_arm"), [(0.2, 394), (0.5, 64), (0.8, 26)])
def test_cohens_sample_sizes(effect: float, per_arm: int) -> None:
    assert per_arm_needed(math.expm1(effect), 1.0) == per_arm


@pytest.mark.parametrize(("cv", "needed"), [(0.05, (46, 18, 6)), (0.08, (116, 44, 13)), (0.11, (219, 81, 22))])
def test_runs_that_see_3_5_and_10_percent(cv: float, needed: tuple[int, ...]) -> None:
    # The normal limit gives 44, 16, 4; 112, 41, 11; 212, 76, 19: it forgets that the spread is estimated too.
    assert tuple(per_arm_needed(difference, cv) for difference in (0.03, 0.05, 0.10)) == needed


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 0.5), st.floats(0.02, 0.5), st.integers(2, 60))
def test_power_grows_with_the_difference_and_the_number(difference: float, cv: float, per_arm: int) -> None:
    here = power_of(difference, cv, per_arm)
    assert 0 <= here <= 1
    assert power_of(difference * 1.2, cv, per_arm) >= here - 1e-6
    assert power_of(difference, cv, per_arm + 5) >= here - 1e-6


@pytest.mark.parametrize("per_arm", [2, 3, 5, 10, 40])
def test_without_a_difference_power_is_at_most_alpha(per_arm: int) -> None:
    assert 0.02 <= power_of(0.0, 0.05, per_arm) <= 0.0501


@pytest.mark.parametrize("per_arm", [3, 5, 20])
def test_the_difference_seen_is_just_seen(per_arm: int) -> None:
    seen = difference_seen(0.05, per_arm)
    assert power_of(seen, 0.05, per_arm) == pytest.approx(0.8, abs=0.005)


def test_more_runs_do_not_replace_boots() -> None:
    assert BootSpread(0.028, 0.05, 1000).mean_cv == pytest.approx(0.028, rel=0.01)
    assert BootSpread(0.0, 0.05, 25).mean_cv == pytest.approx(0.01)


def test_impossible_plans_are_refused() -> None:
    with pytest.raises(ValueError, match="out of reach"):
        per_arm_needed(1e-6, 0.5)
    with pytest.raises(ValueError, match="needs a difference"):
        per_arm_needed(0.0, 0.5)
    with pytest.raises(ValueError, match="two values"):
        power_of(0.1, 0.1, 1)
