"""What guards look at: a tier, a rig, a plan, and what lies on disk and in the surroundings. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from redline.artifacts.disk import DiskFacts
from redline.catalog.fields import ResolvedTier
from redline.catalog.knobs import split_engine_args
from redline.catalog.types import Artifact, Catalog, Drafter, DrafterKind, EngineVersion, Model
from redline.plan.types import FitPlan
from redline.rig.types import Gpu, Rig
from redline.settings import Layers

Form = Literal["embedded", "native", "docker"]
BLOCK_DRAFTERS = frozenset({DrafterKind.DFLASH2, DrafterKind.DFLASH2_LOOKUP})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardContext:
    """All that a guard may look at. Everything with a default may be unknown, and then no guard speaks of it.

    `port_holder` is who holds the port, in words, or None when it is free. `key_file_open` is the file the API key
    came from, when others may read it. `nvcc` is whether a CUDA compiler was found.
    """

    catalog: Catalog
    tier: ResolvedTier
    rig: Rig
    fit: FitPlan
    port_holder: str | None = None
    api_key_given: bool = False
    key_file_open: str | None = None
    form: Form = "embedded"
    disk: DiskFacts | None = None
    layers: Layers = field(default_factory=Layers)
    nvcc: bool | None = None

    @property
    def model(self) -> Model:
        """The tier's model."""
        return self.catalog.models[self.tier.key.model]

    @property
    def artifact(self) -> Artifact:
        """The tier's weights."""
        return self.catalog.artifacts[self.tier.artifact.value]

    @property
    def drafter(self) -> Drafter:
        """What drafts for the tier."""
        return self.catalog.drafters[self.tier.drafter.value]

    @property
    def version(self) -> EngineVersion | None:
        """What is known of the engine's version, or None."""
        return self.catalog.engines[self.tier.key.engine].version(self.tier.engine_version.value)

    @property
    def engine_label(self) -> str:
        """Engine and version in words, for the `versions` of a finding."""
        return f"{self.catalog.engines[self.tier.key.engine].title} {self.tier.engine_version.value}"

    @property
    def drafts_blocks(self) -> bool:
        """Whether an external block drafter is at work."""
        return self.drafter.kind in BLOCK_DRAFTERS and self.tier.spec_n.value > 0

    @property
    def used_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that the tier would take: those it names, else the first that suffice."""
        count = self.tier.gpus or self.catalog.topologies[self.tier.key.topology].gpus
        named = self.tier.gpu_ids.value
        if named:
            wanted = {word.strip() for word in named.split(",")}
            return tuple(gpu for gpu in self.rig.gpus if str(gpu.index) in wanted or gpu.uuid in wanted)
        return self.rig.gpus[:count]

    @property
    def extra_args(self) -> tuple[str, ...]:
        """Arguments that the user adds for the engine."""
        return split_engine_args(self.tier.engine_args.value)

    def flash_attention(self) -> Mapping[str, int]:
        """Return the FlashAttention that the engine would run on each GPU in use, by compute capability."""
        facts = self.version.attention if self.version else None
        if facts is None:
            return {}
        found = {}
        for gpu in self.used_gpus:
            if gpu.compute is not None and (number := facts.flash_attention.get(gpu.compute.partition(".")[0])):
                found[gpu.compute] = number
        return found
