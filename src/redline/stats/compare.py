"""Two arms against each other: faster, slower, equivalent or undetermined, from boot means alone.

Welch's t interval on the logarithms of the boot means. A bootstrap of three boot means would call 19 % of equal
arms different, and one of five 13 % (docs/statistics.md), so none is offered here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, variance
from typing import Final

from redline.stats.boots import Boot, require_distinct
from redline.stats.distribution import t_cdf, t_quantile

MIN_BOOTS: Final = 3
DEFAULT_MARGIN: Final = 0.03
DEFAULT_ALPHA: Final = 0.05


class Verdict(StrEnum):
    """What is established about arm B against arm A, in speed."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Arm B over arm A. `ratio` is of the values as given; `low` and `high` bound it at `1 - alpha`.

    `p_value` is of "no difference"; `equivalence_p` of "differs by the margin or more". Both, the interval and
    `degrees` (Welch-Satterthwaite) are None where there are too few boots for one.
    """

    verdict: Verdict
    reason: str
    ratio: float
    low: float | None
    high: float | None
    margin: float
    alpha: float
    boots_a: int
    boots_b: int
    degrees: float | None
    p_value: float | None
    equivalence_p: float | None


@dataclass(frozen=True, slots=True)
class WelchInterval:
    """Difference of two means (second less first), its standard error and degrees of freedom."""

    difference: float
    error: float
    degrees: float

    def bounds(self, alpha: float) -> tuple[float, float]:
        """Return the interval that misses with chance `alpha`."""
        half = t_quantile(1 - alpha / 2, self.degrees) * self.error
        return self.difference - half, self.difference + half


def welch(first: Sequence[float], second: Sequence[float]) -> WelchInterval | None:
    """Return Welch's comparison of two means (B. L. Welch, Biometrika 34, 1947), None without spread to judge by.

    Raises:
        ValueError: fewer than two values on a side.
    """
    if min(len(first), len(second)) < 2:
        raise ValueError("Welch's comparison needs two values on each side")
    parts = [variance(side) / len(side) for side in (first, second)]
    total = sum(parts)
    difference = fmean(second) - fmean(first)
    # Spread of mere rounding is no spread: times and rates that agree to 12 digits were not measured twice.
    if min(parts) < 1e-24:
        return None
    degrees = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True))
    return WelchInterval(difference, math.sqrt(total), degrees)


def compare_arms(
    arm_a: Sequence[Boot],
    arm_b: Sequence[Boot],
    *,
    higher_is_better: bool,
    margin: float = DEFAULT_MARGIN,
    alpha: float = DEFAULT_ALPHA,
) -> Comparison:
    """Return what is established about B against A.

    `margin` is the relative difference that does not matter to whoever asks: B is equivalent when two one-sided tests
    at `alpha` put the ratio within (1 / (1 + margin), 1 + margin), even if a smaller difference is established too
    (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). Fewer than three boots on a side are always undetermined.
    Several comparisons at once (prompt classes) each have their own chance `alpha` of a false alarm: divide it by
    their number to hold it over all.

    Raises:
        ValueError: an empty arm, a boot given twice (within or across the arms), or a margin or alpha that means
            nothing.
    """
    if not 0 < margin < 1 or not 0 < alpha < 0.5:
        raise ValueError("a margin lies between 0 and 1, and alpha between 0 and 0.5")
    for arm in (arm_a, arm_b, (*arm_a, *arm_b)):
        require_distinct(arm)
    logs_a, logs_b = ([boot.log_mean for boot in arm] for arm in (arm_a, arm_b))
    few = min(len(arm_a), len(arm_b))
    if few < MIN_BOOTS:
        reason = f"{few} boot{'' if few == 1 else 's'} on one side; a verdict needs {MIN_BOOTS} on each"
        return _comparison(Verdict.UNDETERMINED, reason, logs_a, logs_b, margin, alpha, None)
    found = welch(logs_a, logs_b)
    if found is None:
        reason = "boots of one arm agree to the last digit: one measurement was counted more than once"
        return _comparison(Verdict.UNDETERMINED, reason, logs_a, logs_b, margin, alpha, None)
    verdict, reason = _judge(found, margin, alpha, higher_is_better=higher_is_better)
    return _comparison(verdict, reason, logs_a, logs_b, margin, alpha, found)


def _judge(found: WelchInterval, margin: float, alpha: float, *, higher_is_better: bool) -> tuple[Verdict, str]:
    limit = math.log1p(margin)
    inner_low, inner_high = found.bounds(2 * alpha)
    if -limit < inner_low and inner_high < limit:
        return Verdict.EQUIVALENT, f"any difference is below {margin:.1%}"
    low, high = found.bounds(alpha)
    if low > 0 or high < 0:
        gain = (low > 0) == higher_is_better
        return (Verdict.FASTER if gain else Verdict.SLOWER), "the interval excludes no difference"
    return Verdict.UNDETERMINED, "the interval holds both no difference and differences beyond the margin"


def _comparison(
    verdict: Verdict,
    reason: str,
    logs_a: Sequence[float],
    logs_b: Sequence[float],
    margin: float,
    alpha: float,
    found: WelchInterval | None,
) -> Comparison:
    low = high = p_value = equivalence_p = None
    if found is not None:
        low, high = (math.exp(bound) for bound in found.bounds(alpha))
        p_value = min(1.0, 2 * t_cdf(-abs(found.difference) / found.error, found.degrees))
        distance = abs(found.difference) - math.log1p(margin)
        equivalence_p = t_cdf(distance / found.error, found.degrees)
    return Comparison(
        verdict=verdict,
        reason=reason,
        ratio=math.exp(fmean(logs_b) - fmean(logs_a)),
        low=low,
        high=high,
        margin=margin,
        alpha=alpha,
        boots_a=len(logs_a),
        boots_b=len(logs_b),
        degrees=None if found is None else found.degrees,
        p_value=p_value,
        equivalence_p=equivalence_p,
    )
