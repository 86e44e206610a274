"""Facts that memory plans rest on: hardware, the engines' cache geometry, calibrated terms, and the boots behind them.

Each is read from YAML by these types, strictly. Knows what was measured and where; computes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One model of GPU. `torch_visible_bytes` is what the engine's gpu_memory_utilization is a share of."""

    id: str
    title: str
    compute: str
    memory_total_bytes: int
    torch_visible_bytes: int
    bandwidth_bytes_s: int
    source: str
    nvlink: bool | None = None
    fp8_matmul: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGeometry:
    """Constants of an engine's cache allocator for a range of versions and one back end of recurrent prefill.

    `compute` lists the CUDA compute capabilities it was seen on; `chosen_on` those where the engine picks this
    back end by itself. `state_blocks` is what one request holds in each recurrent group while prefix caching is on.
    `sliding_blocks` are the block sizes that an attention back end offers sliding-window layers, by its name; back
    ends that are not named take the block of the other layers.
    """

    id: str
    engine: str
    versions: str
    gdn_prefill: Literal["triton", "flashinfer"]
    compute: tuple[str, ...]
    chosen_on: tuple[str, ...]
    rounding_tokens: int
    rounding_uncached_tokens: int
    default_block_tokens: int
    state_blocks: int
    state_blocks_uncached: int
    checkpoint_blocks: int
    concurrent_batches: int
    retained_tokens: int
    null_blocks: int
    source: str
    sliding_blocks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """How a checkpoint format lies in memory. `quants` are the spellings of `Artifact.quant` that mean it.

    `mtp_bytes_per_value` is how the engine holds the built-in drafter's layer; `file_mtp_bytes_per_value` how the
    files do.
    """

    id: str
    title: str
    quants: tuple[str, ...]
    bytes_per_value: float
    mtp_bytes_per_value: float
    file_mtp_bytes_per_value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadTerm:
    """Memory outside weights and cache, fitted from boots. It applies where every entry of `when` matches.

    The prior is what is believed before any boot is looked at; the boots then move it as far as they can.
    """

    id: str
    title: str
    when: Mapping[str, str | bool | tuple[str, ...]]
    prior_gib: float
    prior_sd_gib: float
    source: str
    scales_with: Literal["batched_tokens"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """Free memory that requests were seen to need outside an engine's own budget, GiB a GPU.

    `extra_request_gib` is added for each further request that is prefilled while drafting.
    """

    id: str
    engine: str
    gib: float
    extra_request_gib: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """Coefficients of one step of decoding, fitted on one GPU: `share` of the measured copy rate that reading weights
    reaches, and what comes on top: fixed, a verified token, a pass of the drafter, a split over GPUs.

    `band` is the largest relative error of a step that the fit had not seen. `compute` are the capabilities it may be
    projected to; `weights` the formats; `families` the architectures.
    """

    id: str
    hardware: str
    compute: tuple[str, ...]
    engine_versions: tuple[str, ...]
    weights: tuple[str, ...]
    families: tuple[str, ...]
    copy_bytes_s: float
    share: float
    fixed_ms: float
    token_us: float
    pass_ms: float
    split_ms: float
    band: float
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedAllocator:
    """A published figure that rests on a change to the engine's allocator, which plans here do not model."""

    id: str
    slugs: tuple[str, ...]
    title: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTerm:
    """Memory of llama.cpp that no formula gives, MiB a device, as far as it was seen. `where` is what it applies to."""

    id: str
    title: str
    where: Literal["one_gpu", "several_gpus", "draft", "projector", "host"]
    low_mib: float
    best_mib: float
    high_mib: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootDrafter:
    """An external drafter as a boot had it: cache of its layers, bytes of its files, and those every GPU holds."""

    layers: int
    kv_heads: int
    head_dim: int
    window: int
    file_bytes: int
    replicated_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """One real start of an engine: what was asked, and what it reported. Absent values are None, never guesses.

    `model` is the id of the model whose shape it had; `checkpoint` names the weights where they were others.
    `available_gib` is as logged, rounded to two decimals; `available_bytes` is the engine's own number where it was
    read from inside. `held_out` says why a row is shown but not fitted from;
    `weights_bytes` is the size of the files, None for dummy weights or where it is not known. `approximate` marks
    tokens that were published rounded.
    """

    id: str
    model: str
    hardware: str
    gpus: int
    engine: str
    engine_version: str
    weights: str
    weights_bytes: int | None
    tensor_parallel: int
    max_model_len: int
    max_num_seqs: int
    batched_tokens: int
    kv_cache_dtype: str
    drafter: Literal["none", "mtp", "dflash2"]
    spec_n: int
    state_dtype: Literal["float32", "bfloat16"]
    gdn_prefill: Literal["triton", "flashinfer"]
    date: str
    source: str
    gpu_memory_utilization: float | None = None
    checkpoint: str = ""
    draft: BootDrafter | None = None
    vision: bool = True
    graphs: bool = True
    prefix_caching: bool = True
    block_size: int | None = None
    loaded_gib: float | None = None
    available_gib: float | None = None
    available_bytes: int | None = None
    blocks: int | None = None
    block_tokens: int | None = None
    pool_tokens: int | None = None
    approximate: bool = False
    refused: bool = False
    held_out: str = ""
    kind: Literal["measured", "reported"] = "measured"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufBoot:
    """One real start of llama.cpp: memory of each device after loading, MiB as reported."""

    id: str
    model: str
    engine_version: str
    weights: str
    weights_bytes: int | None
    context: int
    cache_type: str
    draft_layers: int
    projector_bytes: int
    devices: int
    reported_mib: tuple[float, ...]
    source: str
    date: str
    split: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLists:
    """The lists of this module that a YAML file of the catalogue may hold."""

    hardware: tuple[Hardware, ...] = ()
    kv_geometries: tuple[KvGeometry, ...] = ()
    weight_formats: tuple[WeightFormat, ...] = ()
    overheads: tuple[OverheadTerm, ...] = ()
    headrooms: tuple[Headroom, ...] = ()
    step_models: tuple[StepModel, ...] = ()
    patched_allocators: tuple[PatchedAllocator, ...] = ()
    boots: tuple[Boot, ...] = ()
    gguf_terms: tuple[GgufTerm, ...] = ()
    gguf_boots: tuple[GgufBoot, ...] = ()


MEMORY_LISTS: Final = tuple(item.name for item in fields(MemoryLists))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTables:
    """The same facts by id."""

    hardware: Mapping[str, Hardware]
    kv_geometries: Mapping[str, KvGeometry]
    weight_formats: Mapping[str, WeightFormat]
    overheads: Mapping[str, OverheadTerm]
    headrooms: Mapping[str, Headroom]
    step_models: Mapping[str, StepModel]
    patched_allocators: Mapping[str, PatchedAllocator]
    boots: Mapping[str, Boot]
    gguf_terms: Mapping[str, GgufTerm]
    gguf_boots: Mapping[str, GgufBoot]
