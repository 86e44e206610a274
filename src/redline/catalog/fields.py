"""The fields of a resolved tier: for each its meaning, its bounds, and the knob that overrides it.

A rule sets a field; a knob of the same field wins over every rule. Units stand in the names or the sentences.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from redline.catalog.types import Status, TierKey
from redline.settings import Sourced

FieldType = Literal["int", "float", "bool", "str"]


def tier_field(
    doc: str, type_: FieldType, *, knob: str | None = None, minimum: float = 0, maximum: float = 2**31
) -> Any:
    """Declare a field of `ResolvedTier` with the facts that its override is checked against."""
    return field(metadata={"spec": FieldSpec(doc, type_, knob, minimum, maximum)})


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What a field means, the environment name that overrides it, and the range a value must lie in."""

    doc: str
    type: FieldType
    knob: str | None
    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTier:
    """A slug with every value settled. Each field carries where its value came from."""

    key: TierKey
    status: Sourced[str] = tier_field("How far the tier can be trusted.", "str")
    status_note: Sourced[str | None] = tier_field("Why it has that status.", "str")
    engine_version: Sourced[str] = tier_field("Version of the engine.", "str")
    artifact: Sourced[str] = tier_field("Weights, by artifact id.", "str")
    drafter: Sourced[str] = tier_field("What proposes tokens, by drafter id.", "str")
    spec_n: Sourced[int] = tier_field("Tokens drafted a step; 0 is no drafting.", "int", knob="SPEC_N", maximum=64)
    max_model_len: Sourced[int] = tier_field(
        "Context window of one request, in tokens.", "int", knob="MAX_MODEL_LEN", minimum=256, maximum=2**24
    )
    max_num_seqs: Sourced[int] = tier_field(
        "Requests served at once.", "int", knob="MAX_NUM_SEQS", minimum=1, maximum=1024
    )
    kv_cache_dtype: Sourced[str] = tier_field("Type of a cached key or value.", "str", knob="KV_CACHE_DTYPE")
    batch_tokens: Sourced[int | None] = tier_field(
        "Prompt tokens processed in one step.",
        "int",
        knob="MAX_NUM_BATCHED_TOKENS",
        minimum=32,
        maximum=2**20,
    )
    prompt_cache_mib: Sourced[int | None] = tier_field(
        "Host memory for prompts of earlier requests (llama.cpp), MiB.",
        "int",
        knob="PROMPT_CACHE_MIB",
        maximum=2**20,
    )
    threads: Sourced[int | None] = tier_field(
        "CPU threads of the engine; none: one a physical core.",
        "int",
        knob="THREADS",
        minimum=1,
        maximum=1024,
    )
    enable_thinking: Sourced[bool] = tier_field("Reason before answering.", "bool", knob="ENABLE_THINKING")
    temperature: Sourced[float] = tier_field("Sampling temperature.", "float", knob="TEMP", maximum=5)
    top_p: Sourced[float] = tier_field("Nucleus sampling mass.", "float", knob="TOP_P", maximum=1)
    top_k: Sourced[int] = tier_field("Candidates sampled from; 0 is all.", "int", knob="TOP_K", maximum=2**20)
    min_p: Sourced[float] = tier_field("Least probability against the best.", "float", knob="MIN_P", maximum=1)
    presence_penalty: Sourced[float] = tier_field(
        "Penalty on tokens seen before.", "float", knob="PRESENCE_PENALTY", minimum=-2, maximum=2
    )
    repetition_penalty: Sourced[float] = tier_field(
        "Divisor on tokens seen before; 1 is none.", "float", knob="REPEAT_PENALTY", minimum=0.1, maximum=10
    )
    served_name: Sourced[str] = tier_field("Model name that clients send.", "str", knob="SERVED_NAME")
    bind_host: Sourced[str] = tier_field("Address the server listens on.", "str", knob="BIND_HOST")
    port: Sourced[int] = tier_field("Port the server listens on.", "int", knob="PORT", minimum=1, maximum=65535)

    @property
    def slug(self) -> str:
        """The name the user typed, in full."""
        return self.key.slug


TIER_FIELDS: Final[dict[str, FieldSpec]] = {
    item.name: item.metadata["spec"] for item in fields(ResolvedTier) if "spec" in item.metadata
}
SAMPLER_FIELDS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
)
STATUSES_SERVED_FREELY: Final = frozenset({Status.PRODUCTION, Status.CAVEATS})
