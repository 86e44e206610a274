"""The form of a check and of its result, and how a list of checks is run against one server.

A check that could not be asked is never counted as passed: it is skipped with a reason, inconclusive, or an error
of redline itself.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from redline.catalog.types import Model
from redline.errors import InconclusiveError, RedlineError
from redline.probe.client import Client
from redline.probe.exchange import ChatRequest, ErrorKind
from redline.record.event import payload
from redline.units import NS_PER_S


class CheckStatus(StrEnum):
    """The verdict of one check."""

    PASS = "pass"  # noqa: S105 -- a verdict, no password
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


class SkipReason(StrEnum):
    """Why a check was not asked: the catalogue says it is not offered, or it should have run and could not."""

    NOT_OFFERED = "not_offered"
    UNMET = "unmet"


@payload("check.result")
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A check's verdict with what was seen: `evidence` is short text, `metrics` have their units in their names."""

    check_id: str
    title: str
    status: CheckStatus
    message: str
    failure_class: str
    skip_reason: SkipReason | None = None
    evidence: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    duration_s: float = 0.0


class ThinkingPolicy(StrEnum):
    """What was seen of a server's thinking, whatever it was told."""

    UNKNOWN = "unknown"
    NONE = "none"
    SWITCHABLE = "switchable"
    ALWAYS_ON = "always_on"


@dataclass(slots=True)
class Observed:
    """What earlier checks of a suite saw, for the later ones. Mutable: one suite, one event loop, one writer."""

    thinking: ThinkingPolicy = ThinkingPolicy.UNKNOWN
    fault: str = ""  # a fault of the transport that the last request met, whatever it asked
    silent: str = ""  # how the last request that got no usable answer ended; empty when it was answered
    recalls: list[tuple[int, str]] = field(default_factory=list)  # depth in tokens, and what the answer was worth


@dataclass(frozen=True, slots=True)
class LogRule:
    """A text that must stand in the log of a server that works, or must not. `meaning` says what it shows."""

    text: str
    wanted: bool
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What a check may use.

    `model` is None for an endpoint whose model the catalogue does not know; `drafting` is None where nobody knows
    whether it drafts. `log_lines` is None where the log is not at hand, `free_bytes`, `gpu_free_bytes` and
    `swapped_bytes` where memory cannot be read. `reference` is a server of the same weights that drafts nothing.
    `needles` is how many positions a rung of the ladder asks for; `patience` stretches every time limit.
    """

    client: Client
    model: Model | None
    drafting: bool | None
    draft_method: str = ""
    draft_depth: int = 0
    seed: int = 0
    needles: int = 1
    patience: float = 1.0
    log_lines: Callable[[], Sequence[str]] | None = None
    log_rules: tuple[LogRule, ...] = ()
    free_bytes: Callable[[], int] | None = None
    gpu_free_bytes: Callable[[], int | None] | None = None
    swapped_bytes: Callable[[], int | None] | None = None
    reference: Client | None = None
    seen: Observed = field(default_factory=Observed)


class Check(Protocol):
    """One question."""

    @property
    def id(self) -> str:
        """A name for records and filters: `chat.basic`."""

    @property
    def title(self) -> str:
        """A name for people."""

    @property
    def requires(self) -> tuple[str, ...]:
        """Abilities without which the question makes no sense, by the fields of `catalog.types.Capabilities`."""

    @property
    def failure_class(self) -> str:
        """What kind of fault a failure points at."""

    @property
    def essential(self) -> bool:
        """Whether nothing after it can mean anything once it has failed."""

    @property
    def most_tokens(self) -> tuple[int, int]:
        """The most it spends: prompt tokens and output tokens. The context ladder has no such bound: (0, 0)."""

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask, and judge the answer. Faults of the server are verdicts; only faults of redline raise."""


class BaseCheck:
    """What every check shares: building its own results."""

    id: str = ""
    title: str = ""
    requires: tuple[str, ...] = ()
    failure_class: str = ""
    essential: bool = False
    most_tokens: tuple[int, int] = (0, 0)

    def result(
        self,
        status: CheckStatus,
        message: str,
        *,
        evidence: str = "",
        metrics: Mapping[str, float] | None = None,
        failure_class: str = "",
    ) -> CheckResult:
        """Return this check's result; `failure_class` where it is another than the check's own."""
        return CheckResult(
            check_id=self.id,
            title=self.title,
            status=status,
            message=message,
            failure_class=failure_class or self.failure_class,
            evidence=evidence[:500],
            metrics=dict(metrics or {}),
        )

    def skip(self, reason: SkipReason, message: str) -> CheckResult:
        """Return this check's result when it was not asked."""
        return CheckResult(
            check_id=self.id,
            title=self.title,
            status=CheckStatus.SKIP,
            message=message,
            failure_class=self.failure_class,
            skip_reason=reason,
        )


async def run_checks(checks: Sequence[Check], context: CheckContext) -> AsyncIterator[CheckResult]:
    """Run checks in order and yield each result as it comes.

    Once the server is found dead or hanging the rest are skipped as unmet, and the check before is the one that is
    blamed. So are they when an essential check has failed.
    """
    stopped = ""
    for check in checks:
        if stopped:
            yield _blank(check, CheckStatus.SKIP, stopped, SkipReason.UNMET)
            continue
        refusal = not_offered(check, context.model)
        if refusal is not None:
            yield _blank(check, CheckStatus.SKIP, refusal, SkipReason.NOT_OFFERED)
            continue
        context.seen.silent = context.seen.fault = ""
        result = await _timed(check, context)
        yield result
        if check.essential and result.status is CheckStatus.FAIL:
            stopped = f"{check.id} failed"
        elif not await context.client.healthy():
            stopped = "the server is gone"
            yield _ended(f"the server stopped answering after {check.id}", "engine_died")
        elif context.seen.silent and (how := await _hangs(context)):
            stopped = "the server takes requests and does not finish them"
            yield _ended(f"the server answers /health and finishes no request since {check.id}: {how}", "hang")


async def _hangs(context: CheckContext) -> str:
    """Return how a request for a single token fails to end, or nothing when it ends."""
    request = ChatRequest(messages=({"role": "user", "content": "Say OK."},), max_tokens=1, temperature=0.0)
    exchange = await context.client.chat(request, timeout_s=10.0 * context.patience)
    if exchange.error is None or exchange.error.kind is not ErrorKind.TIMEOUT:
        return ""
    return f"{exchange.error.message}, {len(exchange.chunks)} pieces came"


def not_offered(check: Check, model: Model | None) -> str | None:
    """Return why the model does not offer what a check needs, or None when it may be asked."""
    if model is None:
        return None
    for name in check.requires:
        offer = getattr(model.capabilities, name)
        if not offer.offered:
            return f"not offered by this model: {offer.why}"
    return None


async def _timed(check: Check, context: CheckContext) -> CheckResult:
    started = time.monotonic_ns()
    try:
        result = await check.run(context)
    except InconclusiveError as error:
        result = _blank(check, CheckStatus.INCONCLUSIVE, error.message, None)
    except RedlineError as error:
        result = _blank(check, CheckStatus.FAIL, error.message, None)
    except Exception as error:
        words = f"redline's own fault: {type(error).__name__}: {error}"
        result = _blank(check, CheckStatus.ERROR, words, None)
    if result.status is CheckStatus.FAIL and check.requires and context.model is None:
        # Nobody knows whether this model has that ability, so its absence proves nothing.
        words = f"{result.message}; whether this model offers {check.requires[0]} is not known"
        result = replace(result, status=CheckStatus.INCONCLUSIVE, message=words)
    if result.status is CheckStatus.FAIL and context.seen.fault:
        result = replace(result, failure_class=context.seen.fault)
    return replace(result, duration_s=(time.monotonic_ns() - started) / NS_PER_S)


def _blank(check: Check, status: CheckStatus, message: str, reason: SkipReason | None) -> CheckResult:
    return CheckResult(
        check_id=check.id,
        title=check.title,
        status=status,
        message=message,
        failure_class=check.failure_class,
        skip_reason=reason,
    )


def _ended(message: str, failure_class: str) -> CheckResult:
    return CheckResult(
        check_id="engine.alive",
        title="engine alive",
        status=CheckStatus.FAIL,
        message=message,
        failure_class=failure_class,
    )
