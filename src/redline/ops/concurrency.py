"""Measures streams side by side against a server and records every round."""

import asyncio
from collections.abc import Iterator, Sequence

from redline.bench.concurrency import ConcurrencyPlan, Round, judge_concurrency, run_concurrency
from redline.ops.events import ConcurrencyDone, ProofEvent, RoundDone
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.target import Target
from redline.record.run import Run


def concurrency(target: Target, run: Run, plan: ConcurrencyPlan, earlier: Sequence[Round] = ()) -> Iterator[ProofEvent]:
    """Yield each round, then the verdict. Ctrl-C records the verdict of what there is."""
    rounds: list[Round] = list(earlier)
    done = {(row.number, row.streams) for row in earlier}
    run.append(plan)
    for row in rounds:
        run.append(row)
    try:
        with asyncio.Runner() as runner:
            client = Client(target)
            try:
                for row in drain(runner, run_concurrency(client, plan, done)):
                    run.append(row)
                    rounds.append(row)
                    yield RoundDone(row=row, number=len(rounds), total=plan.rounds * len(plan.levels))
            finally:
                runner.run(client.__aexit__(None, None, None))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        run.append(judge_concurrency(rounds, plan))
        raise
    summary = judge_concurrency(rounds, plan)
    for level in summary.levels:
        run.append(level)
    run.append(summary)
    yield ConcurrencyDone(summary=summary)


def default_levels(slots: int | None) -> tuple[int, ...]:
    """Return 1, 2, 4 ... up to the slots, the slots themselves, or 1, 2, 4 where they are not known."""
    most = slots or 4
    powers = [1 << exponent for exponent in range(10) if 1 << exponent <= most]
    return tuple(sorted({*powers, most}))
