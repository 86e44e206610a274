"""The same questions put to two arms, each answered right or wrong: is one arm better?

Only the questions that the arms answer differently say anything. Two arms that score 110 and 109 of 150 may agree on
every question or on few; that is why scores alone are never compared.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from redline.stats.distribution import binomial_cdf, normal_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """Arm B against arm A over the same questions.

    `difference` is B's share less A's, bounded by `low` and `high` at `1 - alpha`; `p_value` is exact and two-sided.
    """

    both: int
    only_a: int
    only_b: int
    neither: int
    difference: float
    low: float
    high: float
    p_value: float


def mcnemar(*, both: int, only_a: int, only_b: int, neither: int, alpha: float = 0.05) -> PairedComparison:
    """Return the exact test (Q. McNemar, Psychometrika 12, 1947: a binomial over the differing pairs) and interval.

    The interval is Wald's with one pair added to each differing cell (D. G. Bonett, R. M. Price, J. Educ. Behav.
    Stat. 37, 2012), which keeps its promise down to a dozen pairs.

    Raises:
        ValueError: a negative count, or no questions.
    """
    n = both + only_a + only_b + neither
    if min(both, only_a, only_b, neither) < 0 or n == 0:
        raise ValueError("a paired comparison needs questions, and counts of 0 or more")
    p_value = min(1.0, 2 * binomial_cdf(min(only_a, only_b), only_a + only_b)) if only_a + only_b else 1.0
    share_a, share_b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    centre = share_b - share_a
    half = normal_quantile(1 - alpha / 2) * math.sqrt((share_a + share_b - centre**2) / (n + 2))
    return PairedComparison(
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=neither,
        difference=(only_b - only_a) / n,
        low=max(-1.0, centre - half),
        high=min(1.0, centre + half),
        p_value=p_value,
    )


def compare_answers(
    answers_a: Mapping[str, bool], answers_b: Mapping[str, bool], alpha: float = 0.05
) -> PairedComparison:
    """Return the comparison of two arms' answers, keyed by question.

    Raises:
        ValueError: the arms were not asked the same questions, or none.
    """
    if answers_a.keys() != answers_b.keys():
        raise ValueError("a paired comparison needs the same questions on both sides")
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for question, right in answers_a.items():
        counts[right, answers_b[question]] += 1
    return mcnemar(
        both=counts[True, True],
        only_a=counts[True, False],
        only_b=counts[False, True],
        neither=counts[False, False],
        alpha=alpha,
    )
