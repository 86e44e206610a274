"""What an operation says while it runs. A front end shows these; it decides nothing."""

from dataclasses import dataclass

from redline.artifacts.progress import FileProgress
from redline.bench.concurrency import ConcurrencySummary, Round
from redline.bench.prefill import PrefillSample, PrefillSummary
from redline.bench.quick import BenchSample, ClassSummary
from redline.bench.settle import Settling
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Artifact
from redline.checks.check import CheckResult
from redline.checks.ramp import RampSummary, RampTurn
from redline.checks.soak import SoakTurn
from redline.checks.soak_verdict import SoakSummary
from redline.guard.finding import Finding
from redline.launch.stop import Stopped
from redline.ops.server_events import ServerEvent
from redline.plan.types import FitPlan
from redline.rig.types import Rig


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A tier was chosen and resolved for this rig."""

    tier: ResolvedTier
    rig: Rig


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesReady:
    """An artifact is on disk; `verified` is False only when the user had its check left out."""

    artifact: Artifact
    folder: str
    verified: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The plan and what the guards said of it."""

    fit: FitPlan
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDone:
    """A check gave its verdict, the `number`-th of `total`."""

    result: CheckResult
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksDone:
    """All checks of a suite gave their verdicts."""

    suite: str
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleDone:
    """A request was measured, the `number`-th of `total`."""

    sample: BenchSample
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A benchmark is over."""

    summaries: tuple[ClassSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDone:
    """A turn of a soak was answered, the `number`-th; `total` is None where the clock decides."""

    turn: SoakTurn
    number: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakDone:
    """A soak is over."""

    summary: SoakSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RampTurnDone:
    """A turn of a ramp was answered, the `number`-th of `total`."""

    turn: RampTurn
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RampDone:
    """A ramp is over."""

    summary: RampSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDone:
    """A round of streams side by side is over, the `number`-th of `total`."""

    row: Round
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyDone:
    """All rounds are over."""

    summary: ConcurrencySummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillDone:
    """A long prompt was read, the `number`-th of `total`."""

    sample: PrefillSample
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillMeasured:
    """All long prompts were read."""

    summaries: tuple[PrefillSummary, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleDone:
    """A GPU was worked until warm before the measuring, or there is none."""

    settling: Settling


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSaved:
    """The record of this operation, and the exit code it ended with."""

    run_id: str
    directory: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageProgress:
    """A container image is being fetched; docker's own line."""

    image: str
    line: str


ProofEvent = (
    TurnDone
    | SoakDone
    | RampTurnDone
    | RampDone
    | RoundDone
    | ConcurrencyDone
    | PrefillDone
    | PrefillMeasured
    | SettleDone
)

Event = (
    Began
    | FilesReady
    | ImageProgress
    | Planned
    | ServerEvent
    | CheckDone
    | ChecksDone
    | SampleDone
    | Measured
    | RunSaved
    | Stopped
    | FileProgress
)
