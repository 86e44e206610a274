"""The form of a check and of its result, and how a list of checks is run against one server.

A check that could not be asked is never counted as passed: it is skipped with a reason, inconclusive, or an error
of redline itself.
"""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from redline.catalog.types import Model
from redline.errors import RedlineError
from redline.probe.client import Client
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What a check may use. `model` is None for an endpoint whose model the catalogue does not know."""

    client: Client
    model: Model | None
    drafting: bool
    seed: int = 0


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

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask, and judge the answer. Faults of the server are verdicts; only faults of redline raise."""


class BaseCheck:
    """What every check shares: building its own results."""

    id: str = ""
    title: str = ""
    requires: tuple[str, ...] = ()
    failure_class: str = ""

    def result(
        self,
        status: CheckStatus,
        message: str,
        *,
        evidence: str = "",
        metrics: Mapping[str, float] | None = None,
    ) -> CheckResult:
        """Return this check's result."""
        return CheckResult(
            check_id=self.id,
            title=self.title,
            status=status,
            message=message,
            failure_class=self.failure_class,
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

    Once the server is found dead the rest are skipped as unmet, and the check before is the one that is blamed.
    """
    dead = False
    for check in checks:
        if dead:
            yield _blank(check, CheckStatus.SKIP, "the server is gone", SkipReason.UNMET)
            continue
        refusal = not_offered(check, context.model)
        if refusal is not None:
            yield _blank(check, CheckStatus.SKIP, refusal, SkipReason.NOT_OFFERED)
            continue
        yield await _timed(check, context)
        if not await context.client.healthy():
            dead = True
            yield _died(check)


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
    except RedlineError as error:
        result = _blank(check, CheckStatus.FAIL, error.message, None)
    if result.status is CheckStatus.FAIL and check.requires and context.model is None:
        # Nobody knows whether this model has that ability, so its absence proves nothing.
        words = f"{result.message}; whether this model offers {check.requires[0]} is not known"
        result = replace(result, status=CheckStatus.INCONCLUSIVE, message=words)
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


def _died(after: Check) -> CheckResult:
    return CheckResult(
        check_id="engine.alive",
        title="engine alive",
        status=CheckStatus.FAIL,
        message=f"the server stopped answering after {after.id}",
        failure_class="engine_died",
    )
