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
    """The memory of one GPU, or of the host (`device` is `host`).

    `available_bytes` is what may be filled: of a GPU the share the engine is told to use. `spare_bytes` is what an
    engine with a pool takes beyond the need. `reasons` say what decided this device's verdict.
    """

    device: str
    total_bytes: int
    available_bytes: int
    terms: tuple[Term, ...]
    free_bytes: int | None = None
    spare_bytes: int = 0
    verdict: Verdict | None = None
    reasons: tuple[str, ...] = ()

    @property
    def need_bytes(self) -> int:
        """Best estimate of what the tier takes here."""
        return sum(term.best_bytes for term in self.terms)

    @property
    def need_high_bytes(self) -> int:
        """Upper bound of what the tier takes here."""
        return sum(term.high_bytes for term in self.terms)

    @property
    def need_low_bytes(self) -> int:
        """Lower bound of what the tier takes here."""
        return sum(term.low_bytes for term in self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A change that helps, already planned: the verdict it would have, the context it allows, and what it costs."""

    change: str
    verdict: Verdict
    cost: str
    context: int | None = None
    largest_context: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number with its bounds."""

    low: int
    best: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FitPlan:
    """Whether a tier fits a rig, and why. Pool fields are None where the engine has no block pool.

    `pool_blocks` and `pool_tokens` are best estimates, `pool_range_tokens` bounds the tokens; `need_blocks` is what
    one request of the context takes, the blocks the engine keeps back included. `trade` is what the type of the cache
    costs here, in one sentence. `rules` names the record of the allocator's constants, `boots` the recorded starts
    that the estimate rests on.
    """

    slug: str
    verdict: Verdict
    reasons: tuple[str, ...]
    devices: tuple[DevicePlan, ...]
    context: int
    largest_context: int | None
    pool_blocks: int | None = None
    pool_tokens: int | None = None
    suggestions: tuple[Suggestion, ...] = ()
    context_max: int | None = None
    largest_range: Range | None = None
    pool_range_tokens: Range | None = None
    need_blocks: int | None = None
    block_tokens: int | None = None
    pool_block_bytes: int | None = None
    concurrency: float | None = None
    trade: str = ""
    notes: tuple[str, ...] = ()
    rules: str | None = None
    boots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFacts:
    """What an engine reported when it started; absent values are None.

    Bytes come from GiB with two decimals, so they are right to 0.005 GiB. `needed_bytes` and `estimated_context` are
    what an engine says when it refuses; `loaded_bytes` is the weights of one GPU.
    """

    engine: str
    engine_version: str | None = None
    model: str | None = None
    available_bytes: int | None = None
    blocks: int | None = None
    block_tokens: int | None = None
    pool_tokens: int | None = None
    context: int | None = None
    tensor_parallel: int | None = None
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    batched_tokens: int | None = None
    kv_cache_dtype: str | None = None
    quantization: str | None = None
    speculative_method: str | None = None
    speculative_tokens: int | None = None
    gdn_prefill: str | None = None
    eager: bool | None = None
    loaded_bytes: int | None = None
    activation_bytes: int | None = None
    graph_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    gpu_name: str | None = None
    refused: bool = False
    needed_bytes: int | None = None
    estimated_context: int | None = None
