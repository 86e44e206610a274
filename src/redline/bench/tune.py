"""Points of a joint search over a tier's settings: what was refused, what was measured, and which are worth having.

A point is worth having when no other is surely as good in everything and better in something: decode rate, context,
memory. Rates are compared prompt by prompt, since every point answers the same prompts. Knows no server.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean
from typing import Final

from redline.bench.quick import BenchSample
from redline.record.event import payload
from redline.stats.compare import DEFAULT_MARGIN
from redline.stats.interval import Estimate, estimate_mean, estimate_ratio
from redline.workload.prompts import PromptClass

# Less memory than this share saved is no reason to prefer a point: boots of one setting differ as much.
_SAVED: Final = 0.02
MOST_POINTS: Final = 96


@payload("tune.plan")
@dataclass(frozen=True, slots=True, kw_only=True)
class TunePlan:
    """What is searched: each setting with its values, and how each point is measured."""

    slug: str
    vary: Mapping[str, tuple[str, ...]]
    classes: tuple[PromptClass, ...]
    prompts: int = 4
    max_tokens: int = 128
    boots: int = 1
    seed: int = 1

    def points(self) -> tuple[dict[str, str], ...]:
        """Return every combination of values."""
        return tuple(dict(zip(self.vary, values, strict=True)) for values in product(*self.vary.values()))


@payload("tune.point")
@dataclass(frozen=True, slots=True, kw_only=True)
class TunePoint:
    """One combination. `refused` says why it is never started, and is empty where it is feasible.

    `planned_bytes` is what the planner expects of one GPU, or of the host where there is none.
    """

    number: int
    settings: Mapping[str, str]
    refused: str
    context_tokens: int
    planned_bytes: int | None


@payload("tune.boot")
@dataclass(frozen=True, slots=True, kw_only=True)
class TuneBoot:
    """A point was started once. `failed` says why it gave nothing; `memory_bytes` is what its processes held most."""

    point: int
    boot: int
    boot_id: str
    memory_bytes: int | None
    failed: str = ""


@payload("tune.row")
@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRow:
    """A point with what became of it. `ratio` is its rate over that of the first measured point, prompt by prompt."""

    point: TunePoint
    decode_tok_s: Estimate | None
    ratio: Estimate | None
    memory_bytes: int | None
    boots: int
    worth_having: bool
    why: str


@payload("tune.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class TuneSummary:
    """The whole search. `stopped` says what ended it early, and is empty where every feasible point was measured."""

    rows: tuple[TuneRow, ...]
    stopped: str = ""


Rates = Mapping[tuple[str, int], float]


@dataclass(slots=True)
class Measured:
    """What was measured of each point so far. Mutable: filled boot by boot."""

    boots: list[TuneBoot] = field(default_factory=list)
    samples: list[BenchSample] = field(default_factory=list)

    def done(self, point: int, boot: int) -> bool:
        """Whether a point was started that often."""
        return any((row.point, row.boot) == (point, boot) for row in self.boots)

    def failed(self, point: int) -> str:
        """Return why a point gave nothing, or nothing."""
        return next((row.failed for row in self.boots if row.point == point and row.failed), "")

    def rates(self, point: int) -> Rates:
        """Return (class, prompt) -> rate of a point; the geometric mean where several boots answered a prompt."""
        own = {row.boot_id for row in self.boots if row.point == point}
        found: dict[tuple[str, int], list[float]] = {}
        for sample in self.samples:
            if sample.boot_id in own and sample.decode_tok_s:
                found.setdefault((sample.prompt_class.value, sample.prompt_index), []).append(sample.decode_tok_s)
        return {key: math.exp(fmean(map(math.log, values))) for key, values in found.items()}

    def memory(self, point: int) -> int | None:
        """Return the most that a point's processes held."""
        held = [row.memory_bytes for row in self.boots if row.point == point and row.memory_bytes]
        return max(held, default=None)


def ratio_of(one: Rates, other: Rates) -> Estimate | None:
    """Return the ratio of two points over the prompts that both answered, None below two of them."""
    common = sorted(one.keys() & other.keys())
    if len(common) < 2:
        return None
    return estimate_ratio([one[key] for key in common], [other[key] for key in common])


def summarise_tune(points: Sequence[TunePoint], measured: Measured, stopped: str = "") -> TuneSummary:
    """Return the table: every point, refused, failed, not reached or measured, and which are worth having."""
    rates = {point.number: measured.rates(point.number) for point in points}
    known = [point for point in points if rates[point.number]]
    first = rates[known[0].number] if known else {}
    rows = []
    for point in points:
        own = rates[point.number]
        better = next((other for other in known if other is not point and _beats(other, point, rates, measured)), None)
        why = point.refused or measured.failed(point.number) or ("" if own else "not reached")
        if own and better is not None:
            why = f"point {better.number} is {_advantage(better, point, rates, measured)}"
        rows.append(
            TuneRow(
                point=point,
                decode_tok_s=_level(own),
                ratio=ratio_of(own, first) if own else None,
                memory_bytes=measured.memory(point.number),
                boots=sum(row.point == point.number and not row.failed for row in measured.boots),
                worth_having=bool(own) and better is None,
                why=why,
            )
        )
    return TuneSummary(rows=tuple(rows), stopped=stopped)


def _level(rates: Rates) -> Estimate | None:
    """Return the geometric mean over prompts with its interval, which holds for other prompts of these classes."""
    if not rates:
        return None
    logs = estimate_mean([math.log(value) for value in rates.values()])
    low, high = (None if value is None else math.exp(value) for value in (logs.low, logs.high))
    return Estimate(n=logs.n, mean=math.exp(logs.mean), median=math.exp(logs.median), low=low, high=high)


def _beats(one: TunePoint, other: TunePoint, rates: Mapping[int, Rates], measured: Measured) -> bool:
    """Whether one point is surely no worse than another in anything, and better in something."""
    return bool(_advantage(one, other, rates, measured))


def _advantage(one: TunePoint, other: TunePoint, rates: Mapping[int, Rates], measured: Measured) -> str:
    """Return in what one point surely beats another that beats it in nothing, or nothing.

    Points that differ in no respect beat each other in none, so neither is lost.
    """
    ratio = ratio_of(rates[one.number], rates[other.number])
    if ratio is None or ratio.low is None or ratio.high is None or not rates[other.number]:
        return ""
    held, other_held = measured.memory(one.number), measured.memory(other.number)
    lighter = bool(held and other_held and held < (1 - _SAVED) * other_held)
    heavier = bool(held and other_held and other_held < (1 - _SAVED) * held)
    if heavier or one.context_tokens < other.context_tokens or (held is None) is not (other_held is None):
        return ""
    faster, alike = ratio.low > 1, ratio.low > 1 / (1 + DEFAULT_MARGIN) and ratio.high < 1 + DEFAULT_MARGIN
    gains = [
        *(["faster"] if faster else []),
        *(["longer in context"] if one.context_tokens > other.context_tokens else []),
        *(["smaller"] if lighter else []),
    ]
    return " and ".join(gains) if faster or (alike and gains) else ""
