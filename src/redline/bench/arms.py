"""What a run that measures two tiers in turns records: which boot was of which arm, and the verdict of each class."""

from dataclasses import dataclass

from redline.record.event import payload
from redline.stats.compare import Comparison
from redline.stats.interval import Estimate
from redline.workload.prompts import PromptClass


@payload("bench.ab.arm")
@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBoot:
    """Samples of this boot are of this arm; the engine is named where redline started it."""

    arm: str
    slug: str
    boot_id: str
    engine: str | None = None
    engine_version: str | None = None


@payload("bench.ab.verdict")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """What is established about arm B against arm A in one class, by decode rate.

    `paired` is the ratio over the prompts that both arms answered: it tells these very boots apart, and no others.
    """

    regime: str
    prompt_class: PromptClass
    a: str
    b: str
    comparison: Comparison
    differences: tuple[str, ...]
    paired: Estimate | None = None
