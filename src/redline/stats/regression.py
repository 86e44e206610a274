"""Least squares with intervals: what one more of each thing costs. Needs numpy.

For the ramp: time to first token on new tokens and on total tokens. A server that reuses its cache pays for the new
ones; one that does not pays for all of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from redline.stats.distribution import t_cdf, t_quantile

INTERCEPT: Final = "intercept"
# Beyond this, columns say the same thing twice: digits of the solution are rounding (Belsley, Kuh, Welsch 1980).
_WORST_CONDITION: Final = 1e8


@dataclass(frozen=True, slots=True)
class Coefficient:
    """What one more unit of a column adds to y, with its interval and the p-value of "nothing"."""

    name: str
    value: float
    error: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFit:
    """Coefficients by name, the intercept included. `residual` is the standard deviation about the fit, in y's unit."""

    n: int
    degrees: int
    coefficients: Mapping[str, Coefficient]
    residual: float
    r_squared: float


def least_squares(columns: Mapping[str, Sequence[float]], y: Sequence[float], alpha: float = 0.05) -> LinearFit:
    """Return y fitted by an intercept and the columns, with t intervals (Draper, Smith, Applied Regression Analysis).

    Raises:
        ValueError: unequal lengths, fewer rows than coefficients and one, or columns that move together or not at all.
    """
    import numpy as np

    if any(len(column) != len(y) for column in columns.values()) or INTERCEPT in columns:
        raise ValueError("a fit needs columns as long as y, none of them called intercept")
    names = (INTERCEPT, *columns)
    degrees = len(y) - len(names)
    if degrees < 1:
        raise ValueError(f"{len(y)} rows do not determine {len(names)} coefficients with an error")
    design = np.column_stack([np.ones(len(y)), *(np.asarray(column, dtype=float) for column in columns.values())])
    scale = np.linalg.norm(design, axis=0)
    if not scale.all() or np.linalg.cond(design / scale) > _WORST_CONDITION:
        raise ValueError(f"{', '.join(columns)} do not move apart from each other: their costs cannot be told apart")
    target = np.asarray(y, dtype=float)
    orthogonal, triangle = np.linalg.qr(design / scale)
    solution = np.linalg.solve(triangle, orthogonal.T @ target)
    gaps = target - design @ (solution / scale)
    squares = float(gaps @ gaps)
    variance = squares / degrees
    inverse = np.linalg.inv(triangle)
    errors = np.sqrt(variance * (inverse**2).sum(axis=1)) / scale
    spread = float(((target - target.mean()) ** 2).sum())
    return LinearFit(
        n=len(y),
        degrees=degrees,
        coefficients={
            name: _coefficient(name, float(value), float(error), degrees, alpha)
            for name, value, error in zip(names, solution / scale, errors, strict=True)
        },
        residual=math.sqrt(variance),
        r_squared=1 - squares / spread if spread else 1.0,
    )


def _coefficient(name: str, value: float, error: float, degrees: int, alpha: float) -> Coefficient:
    half = t_quantile(1 - alpha / 2, degrees) * error
    p_value = min(1.0, 2 * t_cdf(-abs(value) / error, degrees)) if error else float(value == 0)
    return Coefficient(name, value, error, value - half, value + half, p_value)
