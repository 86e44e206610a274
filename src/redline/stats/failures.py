"""How often something fails, as a bound: what "no failure seen" is worth after so many tries."""

import math
from dataclasses import dataclass

from redline.stats.distribution import beta_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """Failures seen in so many tries; the true rate is at most `upper` with confidence `1 - alpha`."""

    failures: int
    tries: int
    alpha: float
    upper: float

    @property
    def seen(self) -> float:
        """The share that failed."""
        return self.failures / self.tries


def failure_rate(failures: int, tries: int, alpha: float = 0.05) -> FailureRate:
    """Return the rate with its exact one-sided upper bound (C. J. Clopper, E. S. Pearson, Biometrika 26, 1934).

    With no failure this is 1 - alpha^(1/n), of which the rule of three is the approximation.

    Raises:
        ValueError: no tries, or failures outside 0..tries.
    """
    _require_share(failures, tries)
    upper = 1.0 if failures == tries else beta_quantile(1 - alpha, failures + 1, tries - failures)
    return FailureRate(failures=failures, tries=tries, alpha=alpha, upper=upper)


def rule_of_three(tries: int) -> float:
    """Return 3/n, the 95 % upper bound of a rate of which nothing was seen in n tries (J. Hanley, JAMA 249, 1983).

    Raises:
        ValueError: no tries.
    """
    _require_share(0, tries)
    return min(1.0, 3 / tries)


def tries_to_bound(rate: float, alpha: float = 0.05) -> int:
    """Return how many tries without a failure put the upper bound at or below `rate`.

    Raises:
        ValueError: a rate outside 0 to 1.
    """
    if not 0 < rate < 1:
        raise ValueError("a rate to bound lies between 0 and 1")
    return math.ceil(math.log(alpha) / math.log1p(-rate) - 1e-9)


def clopper_pearson(successes: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """Return the exact two-sided interval of a proportion; it never misses more often than `alpha`.

    Raises:
        ValueError: no trials, or successes outside 0..trials.
    """
    _require_share(successes, trials)
    low = 0.0 if successes == 0 else beta_quantile(alpha / 2, successes, trials - successes + 1)
    high = 1.0 if successes == trials else beta_quantile(1 - alpha / 2, successes + 1, trials - successes)
    return low, high


def _require_share(part: int, whole: int) -> None:
    if whole < 1 or not 0 <= part <= whole:
        raise ValueError(f"{part} of {whole} is no proportion")
