"""The facts of the catalogue as frozen values. Each is read from YAML by these very types, strictly.

A fact carries its `source`: a URL, an engine's file and line, or the command of this repository that measured it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from redline.catalog.artifact import (
    Artifact,
    DepthRange,
    Derived,
    DraftCheckpoint,
    Drafter,
    DrafterKind,
    FileSpec,
    Hub,
    LookupSettings,
    Origin,
    Packaged,
    PypiWheel,
    Quantization,
    Undeclared,
)
from redline.catalog.evidence import (
    Evidence,
    EvidenceKind,
    EvidenceSet,
    Hazard,
)
from redline.catalog.memory import Hardware, MemoryLists, MemoryTables
from redline.catalog.tiers import (
    Alias,
    Choice,
    Depth,
    Ladder,
    Reference,
    Rule,
    RuleValue,
    Status,
    TierEntry,
    TierKey,
    Topology,
)

__all__ = [
    "Alias",
    "Architecture",
    "Artifact",
    "AttentionFacts",
    "Capabilities",
    "CapabilityClaim",
    "Catalog",
    "CatalogFile",
    "Choice",
    "Depth",
    "DepthRange",
    "Derived",
    "DraftCheckpoint",
    "Drafter",
    "DrafterKind",
    "EngineSpec",
    "EngineVersion",
    "EnvironmentDefault",
    "Evidence",
    "EvidenceKind",
    "EvidenceSet",
    "FileSpec",
    "Hardware",
    "Hazard",
    "Hub",
    "Ladder",
    "LinearAttention",
    "LookupSettings",
    "Model",
    "Offer",
    "Origin",
    "Packaged",
    "Parsers",
    "Patch",
    "PypiWheel",
    "Quantization",
    "Reasoning",
    "Reference",
    "Rule",
    "RuleValue",
    "Sampler",
    "SlidingAttention",
    "Status",
    "TierEntry",
    "TierKey",
    "Topology",
    "Undeclared",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Recurrent (Gated DeltaNet) layers: heads and dimensions of their state, and the type it is kept in."""

    layers: int
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    state_dtype: Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingAttention:
    """Layers that see only the last `window` tokens."""

    layers: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Constants of a transformer that sizes follow from; counts, not bytes.

    `layers` counts all decoder layers; those of `linear` and `sliding` are among them, the rest attend to everything.
    """

    family: str
    layers: int
    hidden: int
    ffn: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    tied_embeddings: bool
    source: str
    linear: LinearAttention | None = None
    sliding: SlidingAttention | None = None
    mtp_layers: int = 0
    tensor_parallel: tuple[int, ...] = ()

    @property
    def full_attention_layers(self) -> int:
        """Decoder layers whose cache grows with the whole context."""
        return self.layers - (self.linear.layers if self.linear else 0) - (self.sliding.layers if self.sliding else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """A row of sampling values that a model's makers recommend for one mode."""

    id: str
    thinking: bool
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    presence_penalty: float
    repetition_penalty: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Whether a model offers something, and how that is known. `why` is what a skipped check tells the user."""

    offered: bool
    why: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredReach:
    """How many tokens something holds for, as measured with the model itself; checks ask no further."""

    tokens: int
    why: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What checks may ask of a model.

    `coherent_tokens`: output before it repeats itself. `recall_tokens`: depth to which it finds a code again. None
    where nobody measured a limit: then checks expect none.
    """

    tools: Offer
    thinking: Offer
    vision: Offer
    coherent_tokens: MeasuredReach | None = None
    recall_tokens: MeasuredReach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """How hard a model can be asked to reason: the words its chat template takes, and the one served by default."""

    efforts: tuple[str, ...]
    default: str
    note: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsers:
    """Names under which an engine finds its parsers of a model's reasoning and tool calls."""

    reasoning: str | None
    tools: str | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An architecture with its constants, samplers and abilities. `slug` is its spelling inside slugs.

    `checkpoint` is the architecture's name in a checkpoint's config; `dense` is false for mixtures of experts;
    `parsers` are by engine.
    """

    id: str
    slug: str
    title: str
    license: str
    context_max: int
    architecture: Architecture
    samplers: tuple[Sampler, ...]
    capabilities: Capabilities
    source: str
    aliases: tuple[str, ...] = ()
    checkpoint: str = ""
    dense: bool = True
    reasoning: Reasoning | None = None
    parsers: Mapping[str, Parsers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityClaim:
    """What a version of an engine can do, with the file and line that shows it."""

    supported: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentDefault:
    """A variable that the engine is started with, and why."""

    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFacts:
    """Which FlashAttention a version runs, by the first number of a GPU's compute capability."""

    flash_attention: Mapping[str, int]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A change to an engine that others ran with; `needed` says what is known of it on this version."""

    id: str
    effect: str
    needed: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersion:
    """One released version. Capabilities are claimed for this version only.

    `image` is its container; `driver_min` the first NVIDIA driver branch that runs its CUDA; `kv_cache_dtypes` all
    that its command line takes; `without_deep_gemm` the compute capabilities on which DeepGEMM must be off for fp8 and
    fp4 weights.
    """

    version: str
    forms: tuple[Literal["embedded", "native", "docker"], ...]
    package: str
    source: str
    capabilities: Mapping[str, CapabilityClaim]
    image: str | None = None
    cuda: str | None = None
    driver_min: int | None = None
    kv_cache_dtypes: tuple[str, ...] = ()
    attention: AttentionFacts | None = None
    without_deep_gemm: tuple[str, ...] = ()
    environment: Mapping[str, EnvironmentDefault] = field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    note: str = ""

    def can(self, capability: str) -> bool:
        """Whether this version is known to be able to; what is not claimed counts as not."""
        claim = self.capabilities.get(capability)
        return claim is not None and claim.supported


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An engine and the versions known here; `pin` is the one that tiers use."""

    id: str
    title: str
    license: str
    source: str
    pin: str
    versions: tuple[EngineVersion, ...]

    def version(self, name: str) -> EngineVersion | None:
        """Return what is known of a version, or None."""
        return next((item for item in self.versions if item.version == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFile(MemoryLists):
    """What one YAML file may hold; any mixture of these lists."""

    models: tuple[Model, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    drafters: tuple[Drafter, ...] = ()
    engines: tuple[EngineSpec, ...] = ()
    topologies: tuple[Topology, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    rules: tuple[Rule, ...] = ()
    aliases: tuple[Alias, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    evidence_sets: tuple[EvidenceSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalog(MemoryTables):
    """Every fact, by id, after all checks between them have passed. `evidence` holds the rows of all sets too."""

    models: Mapping[str, Model]
    artifacts: Mapping[str, Artifact]
    drafters: Mapping[str, Drafter]
    engines: Mapping[str, EngineSpec]
    topologies: Mapping[str, Topology]
    rules: tuple[Rule, ...]
    aliases: Mapping[str, Alias]
    hazards: Mapping[str, Hazard]
    evidence: Mapping[str, Evidence]
    tiers: Mapping[str, TierKey]
