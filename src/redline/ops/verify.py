"""Runs a suite of checks against a server and records every verdict."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from redline.catalog.types import Model
from redline.checks.check import CheckContext, CheckResult, CheckStatus, LogRule, SkipReason, run_checks
from redline.checks.suites import Estimate, Suite, estimate, suite_checks
from redline.errors import ExitCode
from redline.ops.events import CheckDone, ChecksDone, Event
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.target import Target
from redline.record.event import payload
from redline.record.run import Run

SUITES = tuple(suite.value for suite in Suite)


@payload("check.spent")
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a suite's measured requests took, by the server's own counts."""

    suite: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a server beside its address; the defaults are those of an endpoint that nobody knows."""

    model: Model | None = None
    drafting: bool | None = None
    draft_method: str = ""
    draft_depth: int = 0
    log_lines: Callable[[], Sequence[str]] | None = None
    log_rules: tuple[LogRule, ...] = ()
    free_bytes: Callable[[], int] | None = None
    patience: float = 1.0


def suite_estimate(suite: Suite, model: Model | None) -> Estimate:
    """Return the most tokens that a suite may spend on a model."""
    return estimate(suite_checks(suite), model)


def verify(
    target: Target, facts: Facts, run: Run, *, suite: Suite = Suite.SMOKE, seed: int = 0, needles: int = 1
) -> Iterator[Event]:
    """Yield each verdict of a suite, then all of them together. Every verdict is on record before it is yielded."""
    checks = suite_checks(suite)
    results: list[CheckResult] = []
    with asyncio.Runner() as runner:
        client = Client(target)
        context = CheckContext(
            client=client,
            model=facts.model,
            drafting=facts.drafting,
            draft_method=facts.draft_method,
            draft_depth=facts.draft_depth,
            seed=seed,
            needles=needles,
            patience=facts.patience,
            log_lines=facts.log_lines,
            log_rules=facts.log_rules,
            free_bytes=facts.free_bytes,
        )
        try:
            for result in drain(runner, run_checks(checks, context)):
                run.append(result)
                results.append(result)
                yield CheckDone(result=result, number=len(results), total=max(len(checks), len(results)))
        finally:
            seen = context.seen
            spent = Spent(suite=suite.value, prompt_tokens=seen.prompt_tokens, completion_tokens=seen.completion_tokens)
            run.append(spent)
            runner.run(client.__aexit__(None, None, None))
    yield ChecksDone(suite=suite.value, results=tuple(results))


def verdict_of(results: tuple[CheckResult, ...]) -> ExitCode:
    """Return what a suite's results mean together: a failure, a gap, or done."""
    statuses = {result.status for result in results}
    if CheckStatus.FAIL in statuses:
        return ExitCode.CHECK_FAILED
    if CheckStatus.ERROR in statuses:
        return ExitCode.FAULT
    unmet = any(result.skip_reason is SkipReason.UNMET for result in results)
    if CheckStatus.INCONCLUSIVE in statuses or unmet or not results:
        return ExitCode.INCONCLUSIVE
    return ExitCode.DONE
