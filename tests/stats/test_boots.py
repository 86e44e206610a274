"""The two levels of an arm: boots, and runs within them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.boots import Boot, summarise_boots
from redline.stats.simulate import ArmModel, draw_arm

RATES = st.floats(0.1, 1e5)


def test_summary_of_a_hand_reckoned_arm() -> None:
    summary = summarise_boots([Boot("a", (90.0, 110.0)), Boot("b", (99.0, 121.0))])
    assert (summary.boots, summary.runs) == (2, 4)
    # Geometric means 99.4987 and 109.4486, a tenth apart; theirs is 104.355.
    assert summary.mean.mean == pytest.approx(104.3551, abs=1e-3)
    assert summary.within_cv == pytest.approx(0.14190, abs=1e-4)
    assert summary.between_cv == 0.0  # boots differ by less than their runs explain


def test_one_boot_has_no_interval_however_many_runs() -> None:
    summary = summarise_boots([Boot("a", tuple(float(value) for value in range(90, 110)))])
    assert summary.runs == 20
    assert summary.mean.low is None
    assert summary.between_cv is None


def test_spreads_are_recovered_from_many_boots() -> None:
    model = ArmModel(mean=50, between_cv=0.03, within_cv=0.08)
    summary = summarise_boots(draw_arm(model, np.random.default_rng(3), boots=400, runs=6))
    assert summary.mean.mean == pytest.approx(50, rel=0.01)
    assert summary.within_cv == pytest.approx(0.08, rel=0.05)
    assert summary.between_cv == pytest.approx(0.03, rel=0.2)


@given(st.lists(st.lists(RATES, min_size=1, max_size=5), min_size=2, max_size=6), st.floats(0.01, 100))
def test_a_change_of_unit_changes_only_the_unit(values: list[list[float]], unit: float) -> None:
    plain = summarise_boots([Boot(str(index), tuple(row)) for index, row in enumerate(values)])
    other = summarise_boots(
        [Boot(str(index), tuple(value * unit for value in row)) for index, row in enumerate(values)]
    )
    assert other.mean.mean == pytest.approx(plain.mean.mean * unit, rel=1e-9)
    assert other.between_cv == pytest.approx(plain.between_cv, abs=1e-6)


@pytest.mark.parametrize("values", [(), (1.0, 0.0), (1.0, float("nan")), (-1.0,), (float("inf"),)])
def test_values_that_are_no_rates_are_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        Boot("a", values)


def test_a_boot_is_not_counted_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        summarise_boots([Boot("a", (1.0,)), Boot("a", (2.0,))])
