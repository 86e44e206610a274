"""Experiments with a known truth: arms of boots, and series over sessions, drawn from a seeded generator.

What a verdict is worth is how often it is right on data like these; docs/statistics.md is the table, and the same
draws plan how many boots or sessions a claim needs. Draws are log-normal for rates, and normal or uniform for memory.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from redline.stats.boots import Boot

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmModel:
    """How an arm behaves: spreads are coefficients of variation, `slow_share` of boots run `slow_by` slower.

    The last two model a start that finds less room for its cache than its sisters (inferlint saw 32,336 against
    47,888 tokens from the same flags, and 9 % between the rates).
    """

    mean: float = 100.0
    between_cv: float = 0.028
    within_cv: float = 0.05
    slow_share: float = 0.0
    slow_by: float = 0.0


def draw_arm(model: ArmModel, generator: "Generator", *, boots: int, runs: int, name: str = "a") -> tuple[Boot, ...]:
    """Return `boots` boots of `runs` runs each."""
    means = math.log(model.mean) + model.between_cv * generator.standard_normal(boots)
    means = means + math.log1p(-model.slow_by) * (generator.random(boots) < model.slow_share)
    noise = model.within_cv * generator.standard_normal((boots, runs))
    return tuple(
        Boot(f"{name}{index}", tuple(math.exp(mean + value) for value in row))
        for index, (mean, row) in enumerate(zip(means.tolist(), noise.tolist(), strict=True))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesModel:
    """How a level moves over sessions: `slope` a session, one `step` at session `step_at`, and noise.

    `noise` is half the range where `uniform`, else a standard deviation; `carry` is the share of a session's noise
    that stays in the next (first-order autocorrelation, normal noise only).
    """

    level: float = 20_000.0
    slope: float = 0.0
    noise: float = 50.0
    uniform: bool = True
    carry: float = 0.0
    step: float = 0.0
    step_at: int = 0


def draw_series(model: SeriesModel, generator: "Generator", sessions: int) -> tuple[float, ...]:
    """Return one level a session."""
    if model.uniform:
        noise = generator.uniform(-model.noise, model.noise, sessions).tolist()
    else:
        fresh = model.noise * math.sqrt(1 - model.carry**2)
        noise, last = [], model.noise * generator.standard_normal()
        for _ in range(sessions):
            noise.append(last)
            last = model.carry * last + fresh * generator.standard_normal()
    return tuple(
        model.level + model.slope * index + (model.step if model.step and index >= model.step_at else 0.0) + value
        for index, value in enumerate(noise)
    )
