"""Runs a suite of checks against a server and records every verdict."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redline.catalog.types import Model
from redline.checks.check import Check, CheckContext, CheckResult, CheckStatus, LogRule, SkipReason, run_checks
from redline.checks.context import ContextCeiling, ContextLadder, ContextRecall
from redline.checks.reach import ModelListed
from redline.checks.suites import Estimate, Suite, estimate, suite_checks
from redline.checks.thinking import ThinkingSwitch
from redline.errors import ExitCode
from redline.ops.events import CheckDone, ChecksDone, Event
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.target import Target
from redline.record.event import payload
from redline.record.run import Run

_STANDS: Final = frozenset({CheckStatus.PASS, CheckStatus.WARN, CheckStatus.FAIL})
SUITES: Final = tuple(suite.value for suite in Suite)


@payload("check.spent")
@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What all requests of a suite took, by the server's own counts; `uncounted` ones stated none."""

    suite: str
    prompt_tokens: int
    completion_tokens: int
    requests: int = 0
    uncounted: int = 0


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
    gpu_free_bytes: Callable[[], int | None] | None = None
    swapped_bytes: Callable[[], int | None] | None = None
    patience: float = 1.0


def suite_estimate(suite: Suite, model: Model | None) -> Estimate:
    """Return the most tokens that a suite may spend on a model."""
    return estimate(suite_checks(suite), model)


def verify(
    target: Target,
    facts: Facts,
    run: Run,
    *,
    suite: Suite = Suite.SMOKE,
    seed: int = 0,
    needles: int = 1,
    reference: Target | None = None,
    earlier: Sequence[CheckResult] = (),
) -> Iterator[Event]:
    """Yield each verdict of a suite, then all of them together. Every verdict is on record before it is yielded.

    `reference` is a server of the same weights that drafts nothing. `earlier` are verdicts that a run had when it was
    cut off: those that stand are taken over and not asked again.
    """
    whole = suite_checks(suite)
    results: list[CheckResult] = list(standing(whole, earlier))
    taken = {row.check_id for row in results}
    checks = tuple(check for check in whole if check.id not in taken)
    for row in results:
        run.append(row)
    with asyncio.Runner() as runner:
        client, witness = Client(target), Client(reference) if reference else None
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
            gpu_free_bytes=facts.gpu_free_bytes,
            swapped_bytes=facts.swapped_bytes,
            reference=witness,
        )
        try:
            for result in drain(runner, run_checks(checks, context)):
                run.append(result)
                results.append(result)
                yield CheckDone(result=result, number=len(results), total=max(len(whole), len(results)))
        finally:
            run.append(
                Spent(
                    suite=suite.value,
                    prompt_tokens=client.spent.prompt_tokens,
                    completion_tokens=client.spent.completion_tokens,
                    requests=client.spent.requests,
                    uncounted=client.spent.uncounted,
                )
            )
            runner.run(client.__aexit__(None, None, None))
            if witness is not None:
                runner.run(witness.__aexit__(None, None, None))
    yield ChecksDone(suite=suite.value, results=tuple(results))


def standing(checks: Sequence[Check], earlier: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Return the earlier verdicts that need not be asked again.

    Not those that nothing was learnt from; not the switch for thinking, by which later budgets go; and the rungs of the
    context only together with the judgement of what they recalled.
    """
    known = {check.id for check in checks} - {ThinkingSwitch.id, ModelListed.id}
    told = [row for row in earlier if row.status in _STANDS or row.skip_reason is SkipReason.NOT_OFFERED]
    if ContextRecall.id not in {row.check_id for row in told}:
        known -= {ContextLadder.id, ContextCeiling.id}
    return tuple(row for row in told if row.check_id in known)


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
