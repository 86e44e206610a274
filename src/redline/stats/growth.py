"""Does a level grow from step to step, as memory that leaks does? Growing, stepped, steady or undetermined.

A level that rose once and stayed (a cache that filled up, a graph captured late) fools every trend test, so one step
is tried against the line. Knows no unit: `worth` and `floor` come in that of the values. How many steps find how much
is simulated in docs/statistics.md: 20 MiB a session in +-50 MiB of noise takes 12 sessions, or 15 where the noise is
normal with a standard deviation of 50 MiB.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final

from redline.stats.trend import Slope, theil_sen

MIN_STEPS: Final = 10
# A step must leave this little of the line's residual, and stand this many residuals high, to be called one.
_STEP_RESIDUAL_SHARE: Final = 0.8
_STEP_RESIDUALS_HIGH: Final = 4.0


class GrowthVerdict(StrEnum):
    """What is established about a level over time."""

    GROWING = "growing"
    STEPPED = "stepped"
    STEADY = "steady"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Step:
    """A single rise: the index of the first value after it, and its height."""

    at: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The verdict with what it rests on. `total` is the fitted rise over the series; `step` None unless there is one.

    A slope is None below two values.
    """

    verdict: GrowthVerdict
    reason: str
    n: int
    slope: Slope | None
    total: float | None
    step: Step | None


def judge_growth(values: Sequence[float], *, worth: float, floor: float, alpha: float = 0.05) -> Growth:
    """Return whether equally spaced values grow.

    Growing: the Theil-Sen interval lies above 0 and the fitted rise reaches `floor`, which keeps a long and quiet
    series from failing over a few bytes. Steady: the interval lies below `worth`, the growth a step that one would
    want to know of. Neither: undetermined, and more values would decide. So are fewer than ten values.

    Raises:
        ValueError: `worth` or `floor` not above 0.
    """
    if worth <= 0 or floor <= 0:
        raise ValueError("a growth worth knowing of and a floor are above 0")
    n = len(values)
    slope = theil_sen(range(n), values, alpha) if n >= 2 else None
    if slope is None or slope.low is None or slope.high is None or n < MIN_STEPS:
        reason = f"{n} values; a verdict needs {MIN_STEPS}"
        return Growth(
            verdict=GrowthVerdict.UNDETERMINED, reason=reason, n=n, slope=slope, total=_total(slope, n), step=None
        )
    total = slope.value * (n - 1)
    step = _step(values, floor)
    if step is not None and not _grows_after(values[step.at :], worth, floor, alpha):
        verdict, reason = GrowthVerdict.STEPPED, "one rise explains it better than growth does"
    elif slope.low > 0 and total >= floor:
        verdict, reason = GrowthVerdict.GROWING, "the slope's interval lies above 0 and the rise reaches the floor"
    elif slope.high < worth:
        verdict, reason = GrowthVerdict.STEADY, "growth worth knowing of is excluded"
    else:
        verdict, reason = GrowthVerdict.UNDETERMINED, "growth is neither established nor excluded"
    return Growth(verdict=verdict, reason=reason, n=n, slope=slope, total=total, step=step)


def _total(slope: Slope | None, n: int) -> float | None:
    return None if slope is None else slope.value * (n - 1)


def _grows_after(rest: Sequence[float], worth: float, floor: float, alpha: float) -> bool:
    return judge_growth(rest, worth=worth, floor=floor, alpha=alpha).verdict is GrowthVerdict.GROWING


def _step(values: Sequence[float], floor: float) -> Step | None:
    """Return the rise within the first half that fits clearly better than a line; a later one may be growth yet."""
    n = len(values)
    line = math.sqrt(_line_residual(values) / (n - 2))
    best: tuple[float, Step] | None = None
    for at in range(1, n // 2 + 1):
        before, after = fmean(values[:at]), fmean(values[at:])
        squares = sum((value - before) ** 2 for value in values[:at])
        squares += sum((value - after) ** 2 for value in values[at:])
        residual = math.sqrt(squares / (n - 2))
        if best is None or residual < best[0]:
            best = residual, Step(at, after - before)
    assert best is not None
    residual, step = best
    clear = residual < _STEP_RESIDUAL_SHARE * line and step.height > _STEP_RESIDUALS_HIGH * residual
    return step if clear and step.height >= floor else None


def _line_residual(values: Sequence[float]) -> float:
    n, middle, mean = len(values), (len(values) - 1) / 2, fmean(values)
    over_x = sum((index - middle) ** 2 for index in range(n))
    slope = sum((index - middle) * (value - mean) for index, value in enumerate(values)) / over_x
    return sum((value - mean - slope * (index - middle)) ** 2 for index, value in enumerate(values))
