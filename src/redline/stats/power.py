"""How many runs or boots it takes to see a difference, and what a given number can see.

Spreads and differences are fractions: 0.05 is 5 %. All of it is the two-sided t test on logarithms that the verdicts
use, so a plan made here is a plan for them.
"""

import math
from dataclasses import dataclass
from typing import Final

from redline.stats.distribution import normal_cdf, t_quantile

DEFAULT_POWER: Final = 0.8
DEFAULT_ALPHA: Final = 0.05
_SPREADS: Final = 200
_SHARES: Final = 16
_LARGE: Final = 30
_MOST_RUNS: Final = 100_000


@dataclass(frozen=True, slots=True)
class BootSpread:
    """What boot means spread by: between boots, and within one by `runs` runs of `within_cv` each."""

    between_cv: float
    within_cv: float
    runs: int

    @property
    def mean_cv(self) -> float:
        """The spread of one boot's mean. More runs shrink only the second part."""
        return math.sqrt(self.between_cv**2 + self.within_cv**2 / self.runs)


def power_of(difference: float, cv: float, per_arm: int, alpha: float = DEFAULT_ALPHA) -> float:
    """Return the chance that two arms of `per_arm` independent values that differ by `difference` are told apart.

    0.05 means that the second arm's mean is 1.05 times the first's. Welch's test on normal logarithms: the noncentral
    t distribution (Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions 2, chapter 31), averaged over how
    the two sample variances share their sum, since Welch's degrees of freedom follow from that share. From 31 values
    an arm on the share no longer matters.

    Raises:
        ValueError: fewer than two values an arm, or no spread.
    """
    if per_arm < 2 or cv <= 0 or difference <= -1:
        raise ValueError("power needs two values an arm, a spread above 0 and a difference above -100 %")
    freedom = per_arm - 1
    shift = abs(math.log1p(difference)) / (cv * math.sqrt(2 / per_arm))
    if freedom >= _LARGE:
        return min(1.0, _chance_seen(shift, t_quantile(1 - alpha / 2, 2 * freedom), 2 * freedom))
    total = weights = 0.0
    for step in range(_SHARES + 1):
        # The share is a beta variable of freedom/2, freedom/2; as a squared sine its density is smooth at the ends.
        share = math.sin(math.pi / 4 * step / _SHARES) ** 2
        density = (share * (1 - share)) ** ((freedom - 1) / 2) if share or freedom == 1 else 0.0
        weight = density * _simpson(step, _SHARES)
        if weight:
            critical = t_quantile(1 - alpha / 2, freedom / (share**2 + (1 - share) ** 2))
            total += weight * _chance_seen(shift, critical, 2 * freedom)
            weights += weight
    return min(1.0, total / weights)


def _chance_seen(shift: float, critical: float, degrees: int) -> float:
    """Chance that |t| passes `critical` when its mean is shifted by `shift`; the spread is pooled over `degrees`."""
    high = 1 + 9 / math.sqrt(degrees)
    # s is the sample's spread over the true one: s^2 * degrees is chi-square, and given s the test is a normal one.
    log_scale = math.log(2) + degrees / 2 * math.log(degrees / 2) - math.lgamma(degrees / 2)
    total, width = 0.0, high / _SPREADS
    for step in range(1, _SPREADS + 1):
        s = step * width
        density = math.exp(log_scale + (degrees - 1) * math.log(s) - degrees * s * s / 2)
        seen = normal_cdf(shift - critical * s) + normal_cdf(-shift - critical * s)
        total += _simpson(step, _SPREADS) * density * seen
    return total * width / 3


def _simpson(step: int, steps: int) -> int:
    return 1 if step in (0, steps) else 4 if step % 2 else 2


def per_arm_needed(difference: float, cv: float, power: float = DEFAULT_POWER, alpha: float = DEFAULT_ALPHA) -> int:
    """Return the fewest values an arm (runs of one boot, or boots) that see `difference` with at least `power`.

    Raises:
        ValueError: no difference, no spread, or more than 100,000 values an arm.
    """
    if difference == 0 or not 0 < power < 1:
        raise ValueError("a plan needs a difference, and a power between 0 and 1")
    low, high = 1, 2
    while power_of(difference, cv, high, alpha) < power:
        low, high = high, high * 2
        if high > _MOST_RUNS:
            raise ValueError(f"a difference of {difference:.2%} at a spread of {cv:.1%} is out of reach")
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(difference, cv, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def difference_seen(cv: float, per_arm: int, power: float = DEFAULT_POWER, alpha: float = DEFAULT_ALPHA) -> float:
    """Return the smallest difference that `per_arm` values an arm see with at least `power`, within 0.01 points.

    Raises:
        ValueError: fewer than two values an arm, no spread, or a spread so large that nothing below 1000 % is seen.
    """
    low, high = 0.0, 10.0
    if power_of(high, cv, per_arm, alpha) < power:
        raise ValueError(f"{per_arm} values an arm at a spread of {cv:.0%} see nothing below 1000 %")
    while high - low > 1e-4:
        middle = (low + high) / 2
        if power_of(middle, cv, per_arm, alpha) < power:
            low = middle
        else:
            high = middle
    return high
