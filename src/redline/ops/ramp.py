"""Runs the ramp against a server and records every turn."""

import asyncio
from collections.abc import Iterator, Sequence

from redline.catalog.types import Model
from redline.checks.ramp import RampPlan, RampTurn, judge_ramp, run_ramp
from redline.checks.talk import Voice
from redline.ops.events import ProofEvent, RampDone, RampTurnDone
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.target import Target
from redline.record.run import Run

TURNS_A_RAMP = 12


def ramp(
    target: Target,
    model: Model | None,
    run: Run,
    plan: RampPlan,
    *,
    pid: int | None = None,
    earlier: Sequence[RampTurn] = (),
) -> Iterator[ProofEvent]:
    """Yield each turn, then the verdict. Ctrl-C records the verdict of what there is."""
    turns: list[RampTurn] = list(whole_sessions(earlier))
    run.append(plan)
    for turn in turns:
        run.append(turn)
    first = turns[-1].session + 1 if turns else 0
    voice = Voice(model=model, seed=plan.seed, timeout_s=plan.timeout_s)
    memory = ServerMemory(target.url, pid)
    try:
        with asyncio.Runner() as runner:
            client = Client(target)
            try:
                for turn in drain(runner, run_ramp(client, plan, voice, memory, first_session=first)):
                    run.append(turn)
                    turns.append(turn)
                    yield RampTurnDone(turn=turn, number=len(turns), total=plan.sessions * TURNS_A_RAMP)
            finally:
                runner.run(client.__aexit__(None, None, None))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        run.append(judge_ramp(turns))
        raise
    summary = judge_ramp(turns)
    run.append(summary)
    yield RampDone(summary=summary)


def whole_sessions(turns: Sequence[RampTurn]) -> tuple[RampTurn, ...]:
    """Return the turns of sessions that came to their end: the last turn of a script, or an error."""
    last = {turn.session: turn for turn in turns}
    whole = {number for number, turn in last.items() if turn.error or turn.turn == TURNS_A_RAMP - 1}
    return tuple(turn for turn in turns if turn.session in whole)
