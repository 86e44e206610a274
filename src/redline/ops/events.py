"""What an operation says while it runs. A front end shows these; it decides nothing."""

from dataclasses import dataclass

from redline.artifacts.progress import FileProgress
from redline.bench.quick import BenchSample, ClassSummary
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Artifact
from redline.checks.check import CheckResult
from redline.guard.finding import Finding
from redline.launch.server import Stopped
from redline.launch.state import ServerRecord
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
class AlreadyRunning:
    """The tier is served already, in the same form."""

    server: ServerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """A server is in the way and will be stopped, now that the new one has been checked."""

    server: ServerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """A server moved on; `seconds` since it was created, `text` from its history."""

    server: ServerRecord
    state: str
    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server is ready, `seconds` after it was created."""

    server: ServerRecord
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyStarted:
    """One of several copies of a tier is ready, the `number`-th of `total`; what follows proves this copy."""

    server: ServerRecord
    number: int
    total: int


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
class RunSaved:
    """The record of this operation, and the exit code it ended with."""

    run_id: str
    directory: str
    exit_code: int


Event = (
    Began
    | FilesReady
    | Planned
    | AlreadyRunning
    | Replacing
    | StateChanged
    | Started
    | CopyStarted
    | CheckDone
    | ChecksDone
    | SampleDone
    | Measured
    | RunSaved
    | Stopped
    | FileProgress
)
