"""The soak's memory verdict: it finds a leak in noise, is silent without one, and is not fooled by a single step."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.stats.growth import Growth, GrowthVerdict, judge_growth
from redline.stats.simulate import SeriesModel, draw_series


def judged(values: list[float] | tuple[float, ...]) -> Growth:
    return judge_growth(values, worth=20.0, floor=100.0)


def verdicts(model: SeriesModel, sessions: int, experiments: int = 200, seed: int = 1) -> Counter[GrowthVerdict]:
    generator = np.random.default_rng(seed)
    return Counter(judged(draw_series(model, generator, sessions)).verdict for _ in range(experiments))


@pytest.mark.parametrize("sessions", [12, 20])
def test_20_mib_a_session_are_found_in_50_mib_of_noise(sessions: int) -> None:
    assert verdicts(SeriesModel(slope=20), sessions)[GrowthVerdict.GROWING] >= 190


def test_normal_noise_takes_15_sessions() -> None:
    assert verdicts(SeriesModel(slope=20, uniform=False), 15)[GrowthVerdict.GROWING] >= 190


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("sessions", [12, 20])
def test_noise_alone_is_silent(sessions: int, uniform: bool) -> None:
    found = verdicts(SeriesModel(uniform=uniform), sessions)
    assert found[GrowthVerdict.GROWING] <= 6
    assert found[GrowthVerdict.STEADY] >= 180


@pytest.mark.parametrize("step_at", [1, 3, 5])
def test_one_step_is_called_a_step(step_at: int) -> None:
    found = verdicts(SeriesModel(step=300, step_at=step_at), 12, 100)
    assert found[GrowthVerdict.STEPPED] >= 98


def test_a_leak_behind_a_step_is_found_once_there_are_sessions_enough() -> None:
    assert verdicts(SeriesModel(slope=20, step=300, step_at=3), 15, 100)[GrowthVerdict.GROWING] >= 95


def test_where_and_how_high_a_step_is() -> None:
    found = judged([0.0, 4.0, 1.0, 303.0, 299.0, 301.0, 305.0, 298.0, 302.0, 300.0, 301.0, 299.0])
    assert found.step is not None
    assert found.step.at == 3
    assert found.step.height == pytest.approx(299, abs=3)


def test_a_quiet_series_does_not_fail_over_a_few_bytes() -> None:
    found = judged([float(index) for index in range(20)])
    assert found.slope is not None
    assert found.slope.low is not None
    assert found.slope.low > 0
    assert found.verdict is GrowthVerdict.STEADY


@given(st.lists(st.floats(0, 1e5), max_size=9))
def test_under_ten_sessions_nothing_is_determined(values: list[float]) -> None:
    assert judged(values).verdict is GrowthVerdict.UNDETERMINED


@given(st.floats(0, 1e6), st.integers(10, 30))
def test_a_constant_level_is_steady(level: float, sessions: int) -> None:
    assert judged([level] * sessions).verdict is GrowthVerdict.STEADY


@given(st.lists(st.integers(0, 1000), min_size=10, max_size=20), st.integers(-100_000, 100_000))
def test_the_level_itself_does_not_matter(values: list[int], shift: int) -> None:
    plain, moved = judged([float(value) for value in values]), judged([float(value + shift) for value in values])
    assert plain.verdict is moved.verdict


def test_limits_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        judge_growth([1.0] * 12, worth=0.0, floor=1.0)
