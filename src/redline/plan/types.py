"""A plan as a frozen value. Sizes are bytes; every term says what it rests on."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Whether it fits. UNKNOWN is a verdict: an architecture or version that is not known is never guessed."""

    FIT = "FIT"
    TIGHT = "TIGHT"
    NO = "NO"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One use of memory: best estimate with bounds, and the formula or measurement behind it."""

    name: str
    best_bytes: int
    low_bytes: int
    high_bytes: int
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePlan:
    """The memory of one GPU, or of the host (`device` is `host`)."""

    device: str
    total_bytes: int
    available_bytes: int
    terms: tuple[Term, ...]

    @property
    def need_bytes(self) -> int:
        """Best estimate of what the tier takes here."""
        return sum(term.best_bytes for term in self.terms)

    @property
    def need_high_bytes(self) -> int:
        """Upper bound of what the tier takes here."""
        return sum(term.high_bytes for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A change that helps, already planned: the verdict it would have and what it costs."""

    change: str
    verdict: Verdict
    cost: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """Whether a tier fits a rig, and why. Pool fields are None where the engine has no block pool."""

    slug: str
    verdict: Verdict
    reasons: tuple[str, ...]
    devices: tuple[DevicePlan, ...]
    context: int
    largest_context: int | None
    pool_blocks: int | None = None
    pool_tokens: int | None = None
    suggestions: tuple[Suggestion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFacts:
    """What an engine reported when it started; absent values are None."""

    engine: str
    engine_version: str | None = None
    available_bytes: int | None = None
    blocks: int | None = None
    block_tokens: int | None = None
    pool_tokens: int | None = None
    context: int | None = None
    tensor_parallel: int | None = None
