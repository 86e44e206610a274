"""What intervals and tests stand on: the normal, t, beta, chi-square and binomial distributions, and Kendall's S.

Standard library only. Knows no data. scipy would add 50 to 100 MB for these.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_cdf(z: float) -> float:
    """Return the share of a standard normal at or below `z`."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def normal_quantile(probability: float) -> float:
    """Return the quantile of a standard normal for 0 < probability < 1."""
    return _NORMAL.inv_cdf(probability)


def t_cdf(t: float, degrees: float) -> float:
    """Return the share of Student's t with `degrees` of freedom at or below `t`."""
    upper = 0.5 * beta_cdf(degrees / (degrees + t * t), degrees / 2, 0.5)
    return 1 - upper if t > 0 else upper


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t for 0 < probability < 1; `degrees` need not be whole.

    Raises:
        ValueError: arguments outside that range.
    """
    if not 0 < probability < 1 or degrees <= 0:
        raise ValueError(f"no t quantile at probability {probability} and {degrees} degrees of freedom")
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    high = 1.0
    while t_cdf(high, degrees) < probability:
        high *= 2
    return _root(lambda t: t_cdf(t, degrees) - probability, 0.0, high)


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution for 0 <= probability <= 1."""
    return _root(lambda x: beta_cdf(x, a, b) - probability, 0.0, 1.0)


def chi_square_sf(value: float, degrees: float) -> float:
    """Return the share of chi-square with `degrees` of freedom above `value`."""
    if value <= 0:
        return 1.0
    return 1 - _gamma_lower(degrees / 2, value / 2) if value < degrees + 2 else _gamma_upper(degrees / 2, value / 2)


def binomial_cdf(successes: int, trials: int, share: float = 0.5) -> float:
    """Return the chance of at most `successes` of `trials`, each with chance `share`."""
    if successes < 0:
        return 0.0
    if successes >= trials:
        return 1.0
    return beta_cdf(1 - share, trials - successes, successes + 1)


@lru_cache(maxsize=256)
def kendall_counts(n: int) -> tuple[int, ...]:
    """Return how many of the n! orders of `n` distinct values have 0, 1, 2, ... inversions (Kendall's exact null)."""
    counts = [1]
    for size in range(2, n + 1):
        longer = [0] * (len(counts) + size - 1)
        for index, count in enumerate(counts):
            for step in range(size):
                longer[index + step] += count
        counts = longer
    return tuple(counts)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by Lentz's continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return max(0.0, min(1.0, x))
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny, c, d = 1e-300, 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for numerator in (even, odd):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a


def _gamma_lower(a: float, x: float) -> float:
    """Regularised lower incomplete gamma function by its series (Numerical Recipes, 6.2)."""
    term = total = 1 / a
    for step in range(1, 2000):
        term *= x / (a + step)
        total += term
        if term < total * 1e-16:
            break
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))


def _gamma_upper(a: float, x: float) -> float:
    """Regularised upper incomplete gamma function by its continued fraction (Numerical Recipes, 6.2)."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    fraction = d
    for step in range(1, 2000):
        numerator = -step * (step - a)
        b += 2
        d = 1 / (numerator * d + b or tiny)
        c = b + numerator / c or tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return fraction * math.exp(a * math.log(x) - x - math.lgamma(a))


def _root(rises: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising function crosses zero between `low` and `high`, by bisection to the last digit."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= 1e-14 * abs(middle):
            return middle
        if rises(middle) < 0:
            low = middle
        else:
            high = middle
