"""The fields of a resolved tier: for each its meaning, its bounds, and the knobs that override it.

A rule sets a field; a knob of the same field wins over every rule. Units stand in the names or the sentences.
A field that an engine does not have is None there, with an origin that begins with `absent:`.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from redline.catalog.tiers import Status, TierKey
from redline.settings import Sourced

FieldType = Literal["int", "float", "bool", "str"]


def tier_field(
    doc: str,
    type_: FieldType,
    *,
    knob: str | None = None,
    aliases: tuple[str, ...] = (),
    minimum: float = 0,
    maximum: float = 2**31,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a field of `ResolvedTier` with the facts that its override is checked against."""
    return field(metadata={"spec": FieldSpec(doc, type_, knob, minimum, maximum, aliases, choices)})


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """What a field means, the names that override it, and the range or the words a value must be of.

    `aliases` are other spellings of the knob, as the reference setups of a tier use them.
    """

    doc: str
    type: FieldType
    knob: str | None
    minimum: float
    maximum: float
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value of this field, in words, or None. No value is right for every field."""
        kinds: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}
        if value is None:
            return None
        if not isinstance(value, kinds[self.type]) or (isinstance(value, bool) and self.type != "bool"):
            return f"must be of type {self.type}, not {value!r}"
        if isinstance(value, int | float) and not isinstance(value, bool) and not self.minimum <= value <= self.maximum:
            return f"must be between {self.minimum:g} and {self.maximum:g}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTier:
    """A slug with every value settled. Each field carries where its value came from."""

    key: TierKey
    status: Sourced[str] = tier_field("How far the tier can be trusted.", "str", choices=tuple(Status))
    status_note: Sourced[str | None] = tier_field("Why it has that status.", "str")
    engine_version: Sourced[str] = tier_field("Version of the engine.", "str")
    artifact: Sourced[str] = tier_field("Weights, by artifact id.", "str")
    projector: Sourced[str | None] = tier_field("Vision projector, by artifact id; none: no images here.", "str")
    drafter: Sourced[str] = tier_field("What proposes tokens, by drafter id.", "str")
    spec_n: Sourced[int] = tier_field(
        "Tokens drafted a step; 0 is no drafting.", "int", knob="SPEC_N", aliases=("MTP_DRAFT_N_MAX",), maximum=64
    )
    lookup_key_tokens: Sourced[int | None] = tier_field(
        "Tokens that lookup drafting searches the text for.", "int", knob="LOOKUP_KEY", minimum=1, maximum=64
    )
    lookup_min_hits: Sourced[int | None] = tier_field(
        "Finds that lookup drafting wants before it drafts.", "int", knob="LOOKUP_HITS", minimum=1, maximum=64
    )
    max_model_len: Sourced[int] = tier_field(
        "Context window of one request, in tokens.",
        "int",
        knob="MAX_MODEL_LEN",
        aliases=("CTX_SIZE",),
        minimum=256,
        maximum=2**24,
    )
    max_num_seqs: Sourced[int] = tier_field(
        "Requests served at once.", "int", knob="MAX_NUM_SEQS", aliases=("NP",), minimum=1, maximum=1024
    )
    tensor_parallel: Sourced[int | None] = tier_field(
        "GPUs that share every layer.", "int", knob="TP", minimum=1, maximum=64
    )
    pipeline_parallel: Sourced[int | None] = tier_field(
        "Groups of GPUs that hold the layers in turn.", "int", knob="PP", minimum=1, maximum=64
    )
    gpu_ids: Sourced[str | None] = tier_field("Which GPUs, as `0,1`; none: the first that suffice.", "str", knob="GPUS")
    gpu_memory_utilization: Sourced[float | None] = tier_field(
        "Share of a GPU's memory that the engine may fill.",
        "float",
        knob="GPU_MEMORY_UTILIZATION",
        minimum=0.05,
        maximum=1,
    )
    kv_cache_dtype: Sourced[str] = tier_field(
        "Type of a cached key or value.", "str", knob="KV_CACHE_DTYPE", aliases=("KV_TYPE",)
    )
    attention_backend: Sourced[str | None] = tier_field(
        "Attention kernels; none: the engine's own choice.", "str", knob="ATTN_BACKEND"
    )
    gdn_prefill_backend: Sourced[str | None] = tier_field(
        "Kernels of recurrent prefill; none: the engine's own choice.", "str", knob="GDN_PREFILL_BACKEND"
    )
    quantization: Sourced[str | None] = tier_field(
        "Quantisation named to the engine; none: read from the checkpoint.", "str"
    )
    w4a8: Sourced[bool | None] = tier_field("Eight-bit activations on four-bit weights.", "bool", knob="W4A8")
    dtype: Sourced[str | None] = tier_field("Type of what is not quantised.", "str")
    batch_tokens: Sourced[int | None] = tier_field(
        "Prompt tokens processed in one step.",
        "int",
        knob="MAX_NUM_BATCHED_TOKENS",
        aliases=("UBATCH_SIZE",),
        minimum=32,
        maximum=2**20,
    )
    logical_batch_tokens: Sourced[int | None] = tier_field(
        "Prompt tokens handed over in one call (llama.cpp).", "int", knob="BATCH_SIZE", minimum=32, maximum=2**20
    )
    long_prefill_threshold: Sourced[int | None] = tier_field(
        "Prompt tokens from which a prefill yields to shorter ones; 0 is never.",
        "int",
        knob="LONG_PREFILL_TOKEN_THRESHOLD",
        maximum=2**20,
    )
    prefix_caching: Sourced[bool | None] = tier_field(
        "Keep the start of earlier prompts for requests that share it.", "bool", knob="PREFIX_CACHING"
    )
    prompt_cache_mib: Sourced[int | None] = tier_field(
        "Host memory for prompts of earlier requests (llama.cpp), MiB.",
        "int",
        knob="PROMPT_CACHE_MIB",
        maximum=2**20,
    )
    gpu_layers: Sourced[int | None] = tier_field(
        "Layers put on GPUs (llama.cpp).", "int", knob="N_GPU_LAYERS", maximum=1024
    )
    split_mode: Sourced[str | None] = tier_field(
        "How layers are spread over GPUs (llama.cpp).",
        "str",
        knob="SPLIT_MODE",
        choices=("none", "layer", "row", "tensor"),
    )
    tensor_split: Sourced[str | None] = tier_field(
        "Share of the layers a GPU, as `0.55,0.45` (llama.cpp).", "str", knob="TENSOR_SPLIT"
    )
    flash_attention: Sourced[str | None] = tier_field(
        "FlashAttention kernels of llama.cpp.", "str", knob="FLASH_ATTN", choices=("on", "off", "auto")
    )
    image_min_tokens: Sourced[int | None] = tier_field(
        "Least tokens an image becomes (llama.cpp).", "int", knob="IMAGE_MIN_TOKENS", minimum=1, maximum=2**16
    )
    threads: Sourced[int | None] = tier_field(
        "CPU threads of the engine; none: one a physical core.",
        "int",
        knob="THREADS",
        minimum=1,
        maximum=1024,
    )
    nvlink_mode: Sourced[str | None] = tier_field(
        "How GPUs talk: what is found (auto), or one way by force.",
        "str",
        knob="NVLINK_MODE",
        choices=("auto", "force_on", "force_off", "pcie_p2p"),
    )
    p2p_disabled: Sourced[bool | None] = tier_field(
        "Keep NCCL from reading one GPU's memory from another; none: follows NVLINK_MODE.",
        "bool",
        knob="NCCL_P2P_DISABLE",
    )
    cuda_allocator: Sourced[str | None] = tier_field(
        "Settings of PyTorch's GPU allocator.", "str", knob="PYTORCH_CUDA_ALLOC_CONF"
    )
    enable_thinking: Sourced[bool] = tier_field("Reason before answering.", "bool", knob="ENABLE_THINKING")
    reasoning_effort: Sourced[str | None] = tier_field(
        "How hard to reason; read only when reasoning is on.", "str", knob="REASONING_EFFORT"
    )
    reasoning_parser: Sourced[str | None] = tier_field("Parser that tells reasoning from answer.", "str")
    tool_parser: Sourced[str | None] = tier_field("Parser of tool calls.", "str")
    temperature: Sourced[float] = tier_field(
        "Sampling temperature.", "float", knob="TEMP", aliases=("TEMPERATURE",), maximum=5
    )
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
    served_aliases: Sourced[str | None] = tier_field(
        "Further names, with commas between.", "str", knob="SERVED_ALIASES"
    )
    engine_args: Sourced[str | None] = tier_field(
        "More arguments for the engine, split as a shell would and never run by one.", "str", knob="ENGINE_ARGS"
    )
    bind_host: Sourced[str] = tier_field("Address the server listens on.", "str", knob="BIND_HOST")
    port: Sourced[int] = tier_field("Port the server listens on.", "int", knob="PORT", minimum=1, maximum=65535)

    @property
    def slug(self) -> str:
        """The name the user typed, in full."""
        return self.key.slug

    @property
    def gpus(self) -> int:
        """GPUs that a plain launch of it takes, as far as its own fields say; 0 where they do not."""
        return (self.tensor_parallel.value or 0) * (self.pipeline_parallel.value or 1)


TIER_FIELDS: Final[dict[str, FieldSpec]] = {
    item.name: item.metadata["spec"] for item in fields(ResolvedTier) if "spec" in item.metadata
}
KEY_FIELDS: Final = ("slug", "engine", "model", "topology", "name", "series", "depth")
"""The words of a slug that a rule may ask for."""
SAMPLER_FIELDS: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "repetition_penalty",
)
STATUSES_SERVED_FREELY: Final = frozenset({Status.PRODUCTION, Status.CAVEATS})
ABSENT: Final = "absent:"
