"""Recorded numbers and known faults, each with where it comes from. Knows no engine's code and judges nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class EvidenceKind(StrEnum):
    """How a number came to be."""

    MEASURED = "measured"
    DERIVED = "derived"
    REPORTED = "reported"
    PROJECTED = "projected"


METRICS: Final[Mapping[str, str]] = {
    "decode_narrative": "tok/s",
    "decode_code": "tok/s",
    "prefill_10k": "tok/s",
    "prefill_90k": "tok/s",
    "aggregate": "tok/s",
    "ttft": "ms",
    "ttft_code": "ms",
    "acceptance_length": "tokens",
    "acceptance_rate": "share",
    "context": "tokens",
    "context_filled": "tokens",
    "pool": "tokens",
    "vram_peak": "MiB",
    "vram_gpu0": "MiB",
    "vram_gpu1": "MiB",
    "vram_growth": "MiB",
    "boot": "s",
    "quality_pass1": "of 150",
    "quality_pass3": "of 150",
    "checks_passed": "of 9",
    "stress_passed": "of 8",
    "full_share": "share",
    "stress_share": "share",
    "soak_share": "share",
    "cv_narrative": "%",
    "cv_code": "%",
}
"""What may be recorded, and its unit. A vocabulary, so that one quantity has one name in every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A recorded number about a tier. `setup` says what differed from the tier as it is here."""

    id: str
    slug: str
    metric: str
    value: float
    unit: str
    kind: EvidenceKind
    rig: str
    engine: str
    engine_version: str
    date: str
    source: str
    n: int | None = None
    low: float | None = None
    high: float | None = None
    patches: tuple[str, ...] = ()
    setup: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One number of a set."""

    slug: str
    metric: str
    value: float
    setup: str = ""
    n: int | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSet:
    """Numbers that share their rig, engine, date and source; each becomes one `Evidence`."""

    id: str
    kind: EvidenceKind
    rig: str
    engine: str
    engine_version: str
    date: str
    source: str
    numbers: tuple[Number, ...]
    patches: tuple[str, ...] = ()
    setup: str = ""

    def rows(self) -> tuple[Evidence, ...]:
        """Return the numbers as evidence; the unit is the metric's own, empty for a metric that is not known."""
        return tuple(
            Evidence(
                id=f"{self.id}/{index}",
                slug=number.slug,
                metric=number.metric,
                value=number.value,
                unit=METRICS.get(number.metric, ""),
                kind=self.kind,
                rig=self.rig,
                engine=self.engine,
                engine_version=self.engine_version,
                date=self.date,
                source=self.source,
                n=number.n,
                low=number.low,
                high=number.high,
                patches=self.patches,
                setup=number.setup or self.setup,
            )
            for index, number in enumerate(self.numbers, start=1)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """A known engine fault. `when` says which tiers it concerns, in the words of a rule; empty: all of its engine.

    `versions` is `all` or comparisons such as `>=0.27,<0.33`. `context_above` is the least context that meets it.
    """

    id: str
    title: str
    engine: str
    versions: str
    trigger: str
    effect: str
    mitigation: str
    source: str
    when: Mapping[str, str | int | tuple[str | int, ...]] = field(default_factory=dict)
    context_above: int | None = None
