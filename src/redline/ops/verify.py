"""Runs a suite of checks against a server and records every verdict."""

import asyncio
from collections.abc import Iterator

from redline.catalog.types import Model
from redline.checks.check import CheckContext, CheckResult, CheckStatus, SkipReason, run_checks
from redline.checks.smoke import smoke_suite
from redline.errors import ExitCode
from redline.ops.events import CheckDone, ChecksDone, Event
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.target import Target
from redline.record.run import Run

SUITES = ("smoke",)


def verify(target: Target, model: Model | None, run: Run, *, drafting: bool, seed: int = 0) -> Iterator[Event]:
    """Yield each verdict of the smoke suite, then all of them together."""
    checks = smoke_suite()
    results: list[CheckResult] = []
    with asyncio.Runner() as runner:
        client = Client(target)
        context = CheckContext(client=client, model=model, drafting=drafting, seed=seed)
        try:
            for result in drain(runner, run_checks(checks, context)):
                run.append(result)
                results.append(result)
                yield CheckDone(result=result, number=len(results), total=len(checks))
        finally:
            runner.run(client.__aexit__(None, None, None))
    yield ChecksDone(suite="smoke", results=tuple(results))


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
