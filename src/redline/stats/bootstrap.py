"""Bootstrap intervals of one boot's runs, for display: medians and tails, where no formula serves.

Never for a verdict: a bootstrap of three boot means calls 19 % of equal arms different (docs/statistics.md). The mean
of a few runs is better served by `interval.estimate_mean`. Needs numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from redline.stats.distribution import normal_cdf, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_VALUES = 5


class Statistic(StrEnum):
    """What is estimated."""

    MEAN = "mean"
    MEDIAN = "median"
    P90 = "p90"
    P99 = "p99"


class BootstrapMethod(StrEnum):
    """Plain percentiles, or those corrected for bias and skew."""

    PERCENTILE = "percentile"
    BCA = "bca"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapEstimate:
    """A statistic of `n` values with its interval; bounds are None below five values, which resample too little."""

    statistic: Statistic
    method: BootstrapMethod
    n: int
    point: float
    low: float | None
    high: float | None


def bootstrap(
    values: Sequence[float],
    statistic: Statistic = Statistic.MEDIAN,
    *,
    method: BootstrapMethod = BootstrapMethod.BCA,
    alpha: float = 0.05,
    resamples: int = 4000,
    seed: int = 0,
) -> BootstrapEstimate:
    """Return a statistic's bootstrap interval (B. Efron, JASA 82, 1987, for BCa); the same seed, the same interval.

    Raises:
        ValueError: no values.
    """
    import numpy as np

    if not values:
        raise ValueError("a bootstrap needs at least one value")
    data = np.asarray(values, dtype=float)
    point = float(_apply(statistic, data))
    low = high = None
    if len(values) >= MIN_VALUES:
        picks = np.random.default_rng(seed).integers(0, len(data), size=(resamples, len(data)))
        drawn = np.asarray(_apply(statistic, data[picks]))
        lower, upper = alpha / 2, 1 - alpha / 2
        if method is BootstrapMethod.BCA:
            lower, upper = _corrected(drawn, data, statistic, point, (lower, upper))
        low, high = (float(bound) for bound in np.quantile(drawn, (lower, upper)))
    return BootstrapEstimate(statistic=statistic, method=method, n=len(values), point=point, low=low, high=high)


def _apply(statistic: Statistic, data: "NDArray[Any]") -> "NDArray[Any]":
    import numpy as np

    if statistic is Statistic.MEAN:
        return np.asarray(data.mean(axis=-1))
    share = {Statistic.MEDIAN: 0.5, Statistic.P90: 0.9, Statistic.P99: 0.99}[statistic]
    return np.asarray(np.quantile(data, share, axis=-1))


def _corrected(
    drawn: "NDArray[Any]", data: "NDArray[Any]", statistic: Statistic, point: float, shares: tuple[float, float]
) -> tuple[float, float]:
    """Shares of the resamples to read instead, by median bias and the jackknife's acceleration."""
    import numpy as np

    below = (np.count_nonzero(drawn < point) + 0.5 * np.count_nonzero(drawn == point)) / drawn.size
    if not 0 < below < 1:
        return shares
    bias = normal_quantile(float(below))
    left_out = np.array([float(_apply(statistic, np.delete(data, index))) for index in range(data.size)])
    gaps = left_out.mean() - left_out
    spread = float((gaps**2).sum())
    acceleration = float((gaps**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0

    def moved(share: float) -> float:
        z = bias + normal_quantile(share)
        return normal_cdf(bias + z / (1 - acceleration * z))

    return moved(shares[0]), moved(shares[1])
