"""Does a rate hold over time? The last third of the sessions against the first, shape by shape and together.

Thirds never overlap, so a soak of any length can fail: with the first and the last five sessions compared, five
sessions were always found to retain 100 %. Turns of different shapes run at different rates, so a session counts by
its mean logarithm over the shapes that every session has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final

from redline.stats.compare import welch

MIN_AN_END: Final = 3


class RetentionVerdict(StrEnum):
    """Whether the floor was kept."""

    RETAINED = "retained"
    FELL = "fell"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Last third over first third, as a ratio with its interval; `an_end` is how many sessions each third holds.

    Bounds are None below three sessions an end, and where an end has no spread.
    """

    verdict: RetentionVerdict
    reason: str
    an_end: int
    ratio: float | None
    low: float | None
    high: float | None
    floor: float


def retention(series: Sequence[float], *, floor: float, alpha: float = 0.05) -> Retention:
    """Return whether positive values, one a session in order, kept at least `floor` of their first level.

    Retained: the whole interval is at or above the floor. Fell: all of it is below. Welch's interval on logarithms.

    Raises:
        ValueError: a value that is not positive, or a floor outside 0 to 1.
    """
    if any(not (math.isfinite(value) and value > 0) for value in series):
        raise ValueError("retention compares positive rates; a turn without a rate is to be counted, not averaged")
    return _judge([math.log(value) for value in series], floor, alpha)


def retention_over_shapes(
    series: Mapping[str, Sequence[float]], *, floor: float, alpha: float = 0.05
) -> tuple[Retention, Mapping[str, Retention]]:
    """Return the retention over all shapes, and that of each; every shape has one value a session, in order.

    Raises:
        ValueError: no shapes, shapes of different lengths, or as `retention`.
    """
    lengths = {len(values) for values in series.values()}
    if len(lengths) != 1:
        raise ValueError("every shape needs one rate a session: leave out sessions that lack one")
    each = {shape: retention(values, floor=floor, alpha=alpha) for shape, values in series.items()}
    sessions = zip(*series.values(), strict=True)
    return _judge([fmean(math.log(value) for value in session) for session in sessions], floor, alpha), each


def _judge(logs: Sequence[float], floor: float, alpha: float) -> Retention:
    if not 0 < floor <= 1:
        raise ValueError("a floor of retention lies between 0 and 1")
    an_end = len(logs) // 3
    ratio = low = high = None
    verdict, reason = RetentionVerdict.UNDETERMINED, f"{len(logs)} sessions; a verdict needs {3 * MIN_AN_END}"
    if an_end >= 1:
        first, last = logs[:an_end], logs[-an_end:]
        ratio = math.exp(fmean(last) - fmean(first))
        found = welch(first, last) if an_end >= MIN_AN_END else None
        if found is not None:
            low, high = (math.exp(bound) for bound in found.bounds(alpha))
            if low >= floor:
                verdict, reason = RetentionVerdict.RETAINED, "the whole interval is at or above the floor"
            elif high < floor:
                verdict, reason = RetentionVerdict.FELL, "the whole interval is below the floor"
            else:
                reason = "the interval holds the floor"
        elif an_end >= MIN_AN_END:
            reason = "an end without spread: the same rate was counted more than once"
    return Retention(verdict=verdict, reason=reason, an_end=an_end, ratio=ratio, low=low, high=high, floor=floor)
