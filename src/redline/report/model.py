"""A report as a frozen value: what every renderer shows, and nothing that a renderer has to work out for itself.

A section that has no records is empty or None, and no renderer shows it. Its JSON form is the published one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from redline.checks.check import CheckStatus, SkipReason
from redline.checks.stages import StageState
from redline.launch.outcome import StageTime
from redline.stats.interval import Estimate

REPORT_SCHEMA: Final = 1


class Tone(StrEnum):
    """How good a piece of news is; renderers show it by colour and by a word, never by colour alone."""

    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One of the six questions that a reader has first, answered in whole sentences.

    `points` go into more detail, one a subject; `commands` are ready to type.
    """

    question: str
    words: str
    tone: Tone = Tone.PLAIN
    points: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The six answers of the first screen; none is ever empty."""

    what_ran: Answer
    on_what: Answer
    proved: Answer
    not_proved: Answer
    how_sure: Answer
    what_next: Answer

    @property
    def in_order(self) -> tuple[Answer, ...]:
        """The answers as they are read."""
        return (self.what_ran, self.on_what, self.proved, self.not_proved, self.how_sure, self.what_next)


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and its value."""

    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFact:
    """A run behind the report. `problems` says what of its record could not be read."""

    run_id: str
    command: str
    started_at: str
    duration_s: float | None
    outcome: str
    summary: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFact:
    """One start of a server: ready after `ready_s`, or failed with what is known of the cause."""

    server_id: str
    slug: str
    when: str
    state: str
    ready_s: float | None = None
    memory_bytes: int | None = None
    stages: tuple[StageTime, ...] = ()
    reason: str | None = None
    cause: str | None = None
    evidence: str | None = None
    remedies: tuple[str, ...] = ()
    log_tail: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it never became a server."""
        return self.state == "failed" and self.ready_s is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """The last verdict of a check, and how often it was asked in all."""

    check_id: str
    title: str
    status: CheckStatus
    message: str
    failure_class: str
    skip_reason: SkipReason | None
    evidence: str
    duration_s: float
    run_id: str
    asked: int
    passed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePoint:
    """One measured request, as a plot needs it."""

    boot: int
    decode_tok_s: float | None
    ttft_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpeed:
    """What the requests of one class in one regime add up to, over all boots.

    `over_boots` says what the intervals span: the means of at least three boots, or the requests within fewer.
    """

    regime: str
    prompt_class: str
    boots: int
    requests: int
    failed: int
    over_boots: bool
    decode_tok_s: Estimate | None
    prefill_tok_s: Estimate | None
    ttft_s: Estimate | None
    acceptance_length: float | None
    samples: tuple[SamplePoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRate:
    """How many of the tokens drafted at one place in a draft were accepted; `position` counts from 1."""

    position: int
    accepted: int
    drafts: int

    @property
    def share(self) -> float:
        """Accepted share of the drafts."""
        return self.accepted / self.drafts if self.drafts else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptancePoint:
    """Tokens a drafted step in one request, and how many tokens the boot had generated before it."""

    boot: int
    prompt_class: str
    tokens_before: int
    mean_length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """What drafting brought, by place in the draft and over the life of the server."""

    mean_length: float
    accepted: int
    drafted: int
    by_position: tuple[PositionRate, ...] = ()
    over_time: tuple[AcceptancePoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPoint:
    """First token and decode rate with a prompt of one size; `series` says how it was asked."""

    series: str
    context_tokens: int
    ttft_s: float | None
    decode_tok_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillRow:
    """How fast prompts of one length were read."""

    regime: str
    target_tokens: int
    prefill_tok_s: Estimate | None
    ttft_s: Estimate | None
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLevel:
    """What so many requests side by side made, together and each."""

    streams: int
    aggregate_tok_s: Estimate | None
    per_stream_tok_s: Estimate | None
    ttft_s: Estimate | None
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmVerdict:
    """What a run that measured two tiers in turns established about B against A, in one class."""

    run_id: str
    regime: str
    prompt_class: str
    a: str
    b: str
    ratio: float
    low: float | None
    high: float | None
    boots_a: int
    boots_b: int
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedleCell:
    """Whether a fact was found again: its place in a prompt of one size, 0 % at the beginning."""

    context_tokens: int
    position_percent: float
    status: CheckStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """What a server held at one moment, in seconds since the first such record of its boot."""

    at_s: float
    phase: str
    resident_bytes: int
    gpu_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """A stage of a whole report: how it ended and why, and the run that recorded it.

    `subject` is the tier or address; `earlier` names the report that it was gone through for, where this one went on
    with another.
    """

    subject: str
    stage: str
    state: StageState
    reason: str
    seconds: float
    run_id: str | None
    earlier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that was served and looked at: a tier on a rig with an engine version, or an endpoint."""

    name: str
    slug: str | None
    engine: str | None
    engine_version: str | None
    rig: str
    facts: tuple[Fact, ...] = ()
    settings: tuple[Fact, ...] = ()
    argv: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    runs: tuple[RunFact, ...] = ()
    boots: tuple[BootFact, ...] = ()
    checks: tuple[CheckRow, ...] = ()
    speeds: tuple[ClassSpeed, ...] = ()
    drafting: Drafting | None = None
    context: tuple[ContextPoint, ...] = ()
    needles: tuple[NeedleCell, ...] = ()
    prefill: tuple[PrefillRow, ...] = ()
    streams: tuple[StreamLevel, ...] = ()
    memory: tuple[MemoryPoint, ...] = ()
    endurance: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    @property
    def main_regime(self) -> str | None:
        """The regime with the most requests: the one that headlines quote."""
        counts: dict[str, int] = {}
        for speed in self.speeds:
            counts[speed.regime] = counts.get(speed.regime, 0) + speed.requests
        return max(counts, key=lambda regime: counts[regime], default=None)

    @property
    def headline(self) -> tuple[ClassSpeed, ...]:
        """The speeds of the main regime that have a decode rate."""
        return tuple(row for row in self.speeds if row.regime == self.main_regime and row.decode_tok_s is not None)

    @property
    def peak_gpu_bytes(self) -> int | None:
        """The most that the GPUs together were seen to hold; None where no reading saw a GPU."""
        return max((sum(point.gpu_bytes) for point in self.memory if point.gpu_bytes), default=None)

    @property
    def peak_resident_bytes(self) -> int | None:
        """The most that the server's processes were seen to hold of the host's memory, between requests."""
        return max((point.resident_bytes for point in self.memory), default=None)

    def checks_with(self, *statuses: CheckStatus) -> tuple[CheckRow, ...]:
        """Return the checks of some verdicts."""
        return tuple(row for row in self.checks if row.status in statuses)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """A whole report. `redacted` says whether names, addresses and secrets were taken out of its texts."""

    title: str
    made_at: str
    redline_version: str
    redacted: bool
    answers: Answers
    environment: tuple[Fact, ...] = ()
    subjects: tuple[Subject, ...] = ()
    boots: tuple[BootFact, ...] = ()
    stages: tuple[StageRow, ...] = ()
    verdicts: tuple[ArmVerdict, ...] = ()
    problems: tuple[str, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    schema_version: int = REPORT_SCHEMA
