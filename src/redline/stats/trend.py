"""Does a series rise? The Theil-Sen slope with its interval, and the Mann-Kendall test it rests on.

Ranks only, so that one odd session moves neither. Both take the sessions' noise as independent; noise that carries
over from session to session makes either too sure (docs/statistics.md says how much).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Final

from redline.stats.distribution import kendall_counts, normal_cdf, normal_quantile

_EXACT_UP_TO: Final = 40


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope per unit of x with its interval, and the level at x = 0. Bounds are None where n is too small for one."""

    n: int
    value: float
    low: float | None
    high: float | None
    intercept: float


@dataclass(frozen=True, slots=True)
class TrendTest:
    """Mann-Kendall: S (rises less falls over all pairs), tau-b, and the two-sided p-value of "no trend"."""

    n: int
    s: int
    tau: float
    p_value: float


def theil_sen(x: Sequence[float], y: Sequence[float], alpha: float = 0.05) -> Slope:
    """Return the median slope of all pairs and its interval (P. K. Sen, JASA 63, 1968).

    The interval reads the ordered slopes at Kendall's S of that `alpha`: exact up to 40 points without ties, else by
    the normal limit with the correction for ties.

    Raises:
        ValueError: fewer than two distinct x, or unequal lengths.
    """
    if len(x) != len(y):
        raise ValueError("a trend needs as many x as y")
    slopes = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(zip(x, y, strict=True), 2) if x1 != x2)
    if not slopes:
        raise ValueError("a trend needs values at two distinct x or more")
    value = median(slopes)
    intercept = median(level - value * place for place, level in zip(x, y, strict=True))
    reach = _critical_s(x, y, alpha)
    low = high = None
    if reach is not None and (outside := (len(slopes) - reach) / 2) >= 1:
        rank = math.floor(outside)
        low, high = slopes[rank - 1], slopes[len(slopes) - rank]
    return Slope(n=len(x), value=value, low=low, high=high, intercept=intercept)


def mann_kendall(y: Sequence[float]) -> TrendTest:
    """Return the test of a series against "no trend" (H. B. Mann, Econometrica 13, 1945; ties as in Kendall 1975).

    Raises:
        ValueError: fewer than three values.
    """
    n = len(y)
    if n < 3:
        raise ValueError("a trend test needs three values")
    s = sum((later > earlier) - (later < earlier) for earlier, later in combinations(y, 2))
    pairs, tied = n * (n - 1) // 2, sum(size * (size - 1) // 2 for size in _tie_sizes(y))
    tau = s / math.sqrt(pairs * (pairs - tied)) if tied < pairs else 0.0
    return TrendTest(n=n, s=s, tau=tau, p_value=_p_value(abs(s), n, y))


def _p_value(s: int, n: int, y: Sequence[float]) -> float:
    ties = _tie_sizes(y)
    if n <= _EXACT_UP_TO and not ties:
        counts = kendall_counts(n)
        falls = (n * (n - 1) // 2 - s) // 2
        return min(1.0, 2 * sum(counts[: falls + 1]) / math.factorial(n))
    variance = _variance(n, ties, ())
    return min(1.0, 2 * (1 - normal_cdf(max(0, s - 1) / math.sqrt(variance)))) if variance else 1.0


def _critical_s(x: Sequence[float], y: Sequence[float], alpha: float) -> float | None:
    """Largest S whose upper tail is above alpha / 2: the slopes beyond the matching ranks are outside the interval."""
    n = len(x)
    ties_x, ties_y = _tie_sizes(x), _tie_sizes(y)
    if n > _EXACT_UP_TO or ties_x or ties_y:
        return normal_quantile(1 - alpha / 2) * math.sqrt(_variance(n, ties_y, ties_x))
    counts, pairs, total = kendall_counts(n), n * (n - 1) // 2, math.factorial(n)
    tail = 0
    for falls, count in enumerate(counts):
        tail += count
        if tail > alpha / 2 * total:
            return pairs - 2 * falls if falls else None
    return None


def _variance(n: int, ties_y: Sequence[int], ties_x: Sequence[int]) -> float:
    """Variance of S under no trend, ties in either variable (Kendall, Rank Correlation Methods, 1975, chapter 4)."""
    base = n * (n - 1) * (2 * n + 5)
    for ties in (ties_y, ties_x):
        base -= sum(size * (size - 1) * (2 * size + 5) for size in ties)
    variance = base / 18
    pairs = [sum(size * (size - 1) for size in ties) for ties in (ties_y, ties_x)]
    variance += pairs[0] * pairs[1] / (2 * n * (n - 1))
    triples = [sum(size * (size - 1) * (size - 2) for size in ties) for ties in (ties_y, ties_x)]
    return variance + (triples[0] * triples[1] / (9 * n * (n - 1) * (n - 2)) if n > 2 else 0.0)


def _tie_sizes(values: Sequence[float]) -> list[int]:
    sizes: dict[float, int] = {}
    for value in values:
        sizes[value] = sizes.get(value, 0) + 1
    return [size for size in sizes.values() if size > 1]
