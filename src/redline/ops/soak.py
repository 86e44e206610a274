"""Soaks a server and records every turn; goes on with a soak that was cut off.

A soak that is resumed is a new run that holds the whole sessions of the earlier one as well, so that its record
stands by itself.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from redline.catalog.types import Model
from redline.checks.soak import TURNS_A_SESSION, SoakDied, SoakPlan, SoakTurn, run_soak
from redline.checks.soak_verdict import SoakLimits, judge_soak
from redline.checks.talk import Voice
from redline.errors import RefusedError, UsageError
from redline.ops.events import ProofEvent, SoakDone, TurnDone
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.target import Target
from redline.record.codec import from_json
from redline.record.event import payload
from redline.record.reading import read_events, read_manifest
from redline.record.run import Run


@payload("soak.resumed")
@dataclass(frozen=True, slots=True, kw_only=True)
class SoakResumed:
    """The turns that follow were taken over from an earlier run, `seconds` of soaking."""

    run_id: str
    turns: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What an earlier soak leaves to go on with: its plan and the turns of its whole sessions."""

    run_id: str
    plan: SoakPlan
    turns: tuple[SoakTurn, ...] = ()
    seconds: float = 0.0


def read_earlier(runs_dir: Path, run_id: str, target: Target) -> Earlier:
    """Return what can be gone on with.

    Raises:
        UsageError: no such run, or none of a soak.
        RefusedError: it was of another server, or the server was restarted since.
    """
    folder = runs_dir / run_id
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        raise UsageError(f"There is no run {run_id} to go on with: {error}.", next_step="`redline runs`.") from None
    plan: SoakPlan | None = None
    turns: list[SoakTurn] = []
    for event in read_events(folder):
        if event.kind == "soak.plan":
            plan = from_json(SoakPlan, event.payload)
        elif event.kind == "soak.turn":
            turns.append(from_json(SoakTurn, event.payload))
    if plan is None:
        raise UsageError(f"Run {run_id} is no soak but `{manifest.command}`.", next_step="`redline runs` lists them.")
    if (manifest.url, manifest.server_id) != (target.url, target.server_id):
        raise RefusedError(
            f"Run {run_id} soaked {manifest.slug or manifest.url}, started as {manifest.server_id or 'unmanaged'}; "
            "that is not this server.",
            next_step="Trends are of one server's life: start a new soak.",
        )
    last = turns[-1].session if turns else 0
    cut = sum(turn.session == last for turn in turns) < TURNS_A_SESSION
    whole = tuple(turn for turn in turns if not (cut and turn.session == last))
    return Earlier(run_id=run_id, plan=plan, turns=whole, seconds=sum(turn.wall_s for turn in whole))


def soak(
    target: Target,
    model: Model | None,
    run: Run,
    plan: SoakPlan,
    *,
    pid: int | None = None,
    earlier: Earlier | None = None,
    limits: SoakLimits | None = None,
) -> Iterator[ProofEvent]:
    """Yield each turn, then the verdict. Ctrl-C records the verdict of what there is."""
    turns: list[SoakTurn] = []
    died: SoakDied | None = None
    memory = ServerMemory(target.url, pid)
    voice = Voice(model=model, seed=plan.seed, timeout_s=plan.timeout_s)
    run.append(plan)
    if earlier is not None:
        _same_process(earlier, memory)
        run.append(SoakResumed(run_id=earlier.run_id, turns=len(earlier.turns), seconds=earlier.seconds))
        for turn in earlier.turns:
            run.append(turn)
            turns.append(turn)
    first = turns[-1].session + 1 if turns else 0
    spent = earlier.seconds if earlier else 0.0
    try:
        with asyncio.Runner() as runner:
            client = Client(target)
            try:
                for item in drain(runner, run_soak(client, plan, voice, memory, first_session=first, spent_s=spent)):
                    run.append(item)
                    if isinstance(item, SoakDied):
                        died = item
                        continue
                    turns.append(item)
                    yield TurnDone(turn=item, number=len(turns), total=plan.turns if plan.minutes is None else None)
            finally:
                runner.run(client.__aexit__(None, None, None))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        summary = judge_soak(turns, died, limits)
        run.append(replace(summary, statement=f"interrupted: {summary.statement}"))
        raise
    summary = judge_soak(turns, died, limits)
    run.append(summary)
    yield SoakDone(summary=summary)


def _same_process(earlier: Earlier, memory: ServerMemory) -> None:
    """Refuse to go on where another process serves now: its memory and its age are not those of the earlier turns."""
    now = memory.sample().process
    then = next((turn.process for turn in reversed(earlier.turns) if turn.process), None)
    if now is not None and then is not None and then != f"{now.pid}/{now.start_ticks}":
        raise RefusedError(
            f"The server was restarted since run {earlier.run_id}.",
            next_step="Trends are of one server's life: start a new soak.",
        )
