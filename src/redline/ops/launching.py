"""Starting a checked plan and seeing it through: replace what is in the way, start, wait; go back when that fails."""

import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import EngineStartError, RedlineError, RefusedError
from redline.launch.plan_file import read_plan
from redline.launch.server import advance, register, start
from redline.launch.state import ServerRecord, ServerState, read_record
from redline.launch.stop import Orphan, Stopped, end_orphan, stop
from redline.ops.conflicts import Conflict
from redline.ops.down import stop_with_words
from redline.ops.server_events import Outlived, Replacing, RollingBack, ServerEvent, Started
from redline.ops.servers import wait_ready
from redline.ops.stream import deferred_signals
from redline.record.codec import jsonable
from redline.record.files import read_json, write_atomic
from redline.rig.ports import find_port_holder
from redline.settings import Settings
from redline.units import format_gib

CONDITIONS_FILE: Final = "conditions.json"


@dataclass(frozen=True, slots=True)
class Switch:
    """A plan that passed every check, in the folder registered for it, and what has to end before it starts.

    `recheck` is asked once these have ended, and returns why the plan cannot start after all, or None.
    """

    folder: Path
    plan: LaunchPlan
    orphans: Sequence[Orphan] = ()
    conflicts: Sequence[Conflict] = ()
    rollback: bool = False
    recheck: Callable[[], str | None] = lambda: None


def prepare_folder(settings: Settings, plan: LaunchPlan, conditions: Mapping[str, Any]) -> Path:
    """Register a server that passed its checks, with what it is made from beside it; nothing is started.

    Raises:
        AccessError, DiskSpaceError: its folder cannot be made.
    """
    folder, _ = register(settings.servers_dir, plan)
    write_atomic(folder / CONDITIONS_FILE, json.dumps(jsonable(conditions)) + "\n")
    advance(folder, ServerState.CHECKED, "passed every check that can be made without starting it")
    return folder


def switch(settings: Settings, request: Switch) -> Generator[ServerEvent | Stopped, None, ServerRecord]:
    """End what is in the way, start the plan, wait until it is ready, and return its record then.

    When that fails after something was ended: with `rollback` it is started again, else the error says how to.

    Raises:
        EngineStartError: it did not become a server.
        RefusedError: its port was taken by somebody else meanwhile.
        FaultError: something would not end.
    """
    ended: list[tuple[Path, ServerRecord]] = []
    try:
        yield from _clear(request, ended)
        _port_must_be_free(request.plan)
        if (why := request.recheck()) is not None:
            raise RefusedError(why, next_step="Close what holds the memory, or use a smaller context.")
        return (yield from start_and_wait(settings, request.folder, request.plan))
    except RedlineError as error:
        _abandon(request.folder, error.message)
        if not ended:
            raise
        if request.rollback:
            raise (yield from _roll_back(settings, ended, error)) from None
        commands = " and ".join(f"`redline restart {record.server_id}`" for _, record in ended)
        names = " and ".join(record.slug for _, record in ended)
        error.next_step = f"{error.next_step or ''} To have {names} back: {commands}.".strip()
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        _abandon(request.folder, "interrupted")
        raise


def _clear(request: Switch, ended: list[tuple[Path, ServerRecord]]) -> Iterator[ServerEvent | Stopped]:
    for orphan in request.orphans:
        yield Outlived(orphan=orphan)
        yield end_orphan(orphan)
    for conflict in request.conflicts:
        folder, record = conflict.holding.folder, conflict.holding.record
        yield Replacing(server=record, why=conflict.why)
        was_ready = record.state is ServerState.READY
        for event in stop_with_words(folder, record):
            if isinstance(event, Stopped) and was_ready:
                ended.append((folder, record))
            yield event
            if isinstance(event, Stopped) and event.gpu_left_bytes:
                raise EngineStartError(
                    f"{record.slug} ended, and {format_gib(event.gpu_left_bytes)} of GPU memory were not given back.",
                    next_step="nvidia-smi shows who holds it; the driver may need a moment, or a restart.",
                )


def _port_must_be_free(plan: LaunchPlan) -> None:
    holder = find_port_holder(plan.host, plan.port)
    if holder is not None:
        raise RefusedError(
            f"Port {plan.port} was taken by {holder.describe()} before {plan.slug} could have it.",
            next_step="Stop that program, or give another port: --port N.",
        )


def start_and_wait(
    settings: Settings, folder: Path, plan: LaunchPlan
) -> Generator[ServerEvent | Stopped, None, ServerRecord]:
    """Start a registered plan, yield its steps, and return its record once it is ready. Ctrl-C stops it again.

    Raises:
        EngineStartError: it did not become a server.
    """
    try:
        with deferred_signals():
            start(folder, environment(settings, plan))
        return (yield from wait_ready(folder))
    except (KeyboardInterrupt, GeneratorExit, SystemExit):
        record = read_record(folder)
        if record is not None:
            with suppress(RedlineError):
                stop(folder, record, now=True)
        raise


def _abandon(folder: Path, why: str) -> None:
    """Close the record of a server that was never started."""
    record = read_record(folder)
    if record is not None and record.running and record.supervisor is None:
        with suppress(RedlineError, OSError):
            advance(folder, ServerState.FAILED, f"not started: {why}")


def _roll_back(
    settings: Settings, ended: Sequence[tuple[Path, ServerRecord]], error: RedlineError
) -> Generator[ServerEvent | Stopped, None, RedlineError]:
    """Start the ended servers again, each from its own plan, and return the error with how that went."""
    words = []
    for folder, record in ended:
        yield RollingBack(server=record, because=error.message)
        try:
            back = yield from start_again(settings, folder)
            words.append(f"{record.slug} is back at {back.url}.")
        except RedlineError as failure:
            words.append(f"{record.slug} could not be brought back: {failure.message}")
    again = type(error) if isinstance(error, EngineStartError | RefusedError) else EngineStartError
    return again(f"{error.message} {' '.join(words)}", next_step=error.next_step, details=error.details)


def start_again(settings: Settings, folder: Path) -> Generator[ServerEvent | Stopped, None, ServerRecord]:
    """Start a server once more from the plan in its folder, as a new one, and return its record once it is ready.

    Raises:
        EngineStartError: it did not become a server, or its plan cannot be read.
    """
    plan = read_plan(folder)
    if plan is None:
        raise EngineStartError(f"The plan in {folder} cannot be read.", next_step="Start the tier with `redline up`.")
    made_from = read_json(folder / CONDITIONS_FILE) or {}
    fresh = prepare_folder(settings, plan, made_from if isinstance(made_from, dict) else {})
    try:
        record = yield from start_and_wait(settings, fresh, plan)
    except RedlineError as error:
        _abandon(fresh, error.message)
        raise
    yield Started(server=record, seconds=record.ready_s or 0.0)
    return record


def environment(settings: Settings, plan: LaunchPlan) -> dict[str, str]:
    """Return the environment of a plan's supervisor: this process's, and the secrets that the plan names.

    Secrets stand under redline's own names; the supervisor gives them to the engine under the engine's.
    """
    names = {"REDLINE_API_KEY", *(plan.secret_aliases.get(name, name) for name in plan.secret_env)}
    secrets = {name: value for name in names if (value := settings.secret(name))}
    return {**os.environ, **secrets}
