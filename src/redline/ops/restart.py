"""Starting a server again from its own plan: the same command, the same port, nothing resolved anew."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.engine.launch_plan import LaunchPlan
from redline.errors import MissingError, NoServerError
from redline.launch.plan_file import read_plan
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord, ServerState, list_servers
from redline.launch.stop import Stopped, find_orphans
from redline.ops.conflicts import Conflict, find_conflicts, holdings
from redline.ops.launching import CONDITIONS_FILE, Switch, prepare_folder, switch
from redline.ops.server_events import ServerEvent, Started
from redline.ops.servers import BUSY, lock_path, none_running, not_called, several
from redline.record.files import hold_lock, read_json
from redline.settings import Settings


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Which server, by slug, id or port; without a name the one that runs, else the last that was ready."""

    name: str | None = None
    beside: bool = False
    rollback: bool = False


def restart(settings: Settings, request: RestartRequest) -> Iterator[ServerEvent | Stopped]:
    """Yield each step of starting a server again; it is checked before anything is stopped.

    Raises:
        NoServerError, InconclusiveError: no such server, or several.
        MissingError: its program is gone, or its plan cannot be read; nothing was stopped.
        EngineStartError: it did not become a server.
    """
    with hold_lock(lock_path(settings), BUSY):
        running = running_servers(settings.servers_dir)
        folder, record = _meant(settings, request.name, running)
        plan = read_plan(folder)
        if plan is None:
            raise MissingError(
                f"The plan in {folder} cannot be read.", next_step=f"Start it anew: `redline up {record.slug}`."
            )
        _program_must_be_there(plan)
        conflicts = _conflicts(plan, record, running, beside=request.beside)
        orphans = [
            orphan
            for orphan in find_orphans(settings.servers_dir)
            if not request.beside or orphan.record.port == plan.port
        ]
        made_from = read_json(folder / CONDITIONS_FILE)
        fresh = prepare_folder(settings, plan, made_from if isinstance(made_from, dict) else {})
        ready = yield from switch(settings, Switch(fresh, plan, orphans, conflicts, request.rollback))
        yield Started(server=ready, seconds=ready.ready_s or 0.0)


def _meant(settings: Settings, name: str | None, running: list[tuple[Path, ServerRecord]]) -> tuple[Path, ServerRecord]:
    every = list_servers(settings.servers_dir)
    if name is not None:
        pool = [item for item in running if item[1].called(name)] or [item for item in every if item[1].called(name)]
        if not pool:
            raise not_called(name, [record for _, record in every])
        return pool[-1]
    if len(running) > 1:
        raise several([record for _, record in running])
    once_ready = running or [item for item in every if item[1].ready_at is not None]
    if not once_ready:
        raise NoServerError(none_running(settings).message, next_step="Start one with `redline up`.")
    return once_ready[-1]


def _program_must_be_there(plan: LaunchPlan) -> None:
    program = plan.argv[0]
    if plan.form != "docker" and os.sep in program and not os.access(program, os.X_OK):
        raise MissingError(
            f"{program} is not there any more.", next_step=f"Start the tier anew: `redline up {plan.slug}`."
        )


def _conflicts(
    plan: LaunchPlan, record: ServerRecord, running: list[tuple[Path, ServerRecord]], *, beside: bool
) -> tuple[Conflict, ...]:
    held = holdings(running)
    itself = tuple(Conflict(item, "it is restarted") for item in held if item.record.server_id == record.server_id)
    others = [item for item in held if item.record.server_id != record.server_id]
    if record.state not in (ServerState.STOPPED, ServerState.FAILED):
        others = [item for item in others if item.record.port == plan.port]  # it ran beside these before
    return (*itself, *find_conflicts(plan, others, beside=beside, fits=lambda _: True))
