"""Means and proportions with 95 % intervals.

Small samples only need a dozen additions, so this module stays on the standard library and costs no import.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Final

from redline.stats.distribution import t_quantile

Z_95: Final = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of `n` values; `low` and `high` bound it at 95 %, and are None where one value gives no spread."""

    n: int
    mean: float
    median: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the interval's width, the number after the plus-minus sign."""
        return None if self.high is None or self.low is None else (self.high - self.low) / 2


def estimate_mean(values: Sequence[float], alpha: float = 0.05) -> Estimate:
    """Return mean, median and Student's t interval of independent values, which misses with chance `alpha`.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("an estimate needs at least one value")
    n, mean = len(values), fmean(values)
    if n == 1:
        return Estimate(n=1, mean=mean, median=mean, low=None, high=None)
    half = t_quantile(1 - alpha / 2, n - 1) * stdev(values) / math.sqrt(n)
    return Estimate(n=n, mean=mean, median=median(values), low=mean - half, high=mean + half)


def estimate_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Return the geometric mean of paired ratios with its t interval, taken on the logarithms.

    Raises:
        ValueError: no pairs, unequal lengths, or a value that is not positive.
    """
    if len(numerators) != len(denominators):
        raise ValueError("paired ratios need as many numerators as denominators")
    if any(value <= 0 for value in (*numerators, *denominators)):
        raise ValueError("ratios of rates need positive values")
    logs = [math.log(top / bottom) for top, bottom in zip(numerators, denominators, strict=True)]
    log_estimate = estimate_mean(logs)
    return Estimate(
        n=log_estimate.n,
        mean=math.exp(log_estimate.mean),
        median=math.exp(log_estimate.median),
        low=None if log_estimate.low is None else math.exp(log_estimate.low),
        high=None if log_estimate.high is None else math.exp(log_estimate.high),
    )


def wilson_interval(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion (E. B. Wilson, JASA 22, 1927).

    Raises:
        ValueError: no trials, or successes outside 0..trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials is no proportion")
    share, square = successes / trials, z * z
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = z / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    return max(0.0, centre - half), min(1.0, centre + half)
