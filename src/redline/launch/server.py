"""Making, starting and following servers from another process. How they are stopped is `redline.launch.stop`."""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import EngineStartError, FaultError
from redline.launch.family import family_of
from redline.launch.plan_file import write_plan
from redline.launch.state import (
    EVENTS_FILE,
    SCHEMA,
    SUPERVISOR_LOG,
    ServerRecord,
    ServerState,
    append_event,
    list_servers,
    read_history,
    read_record,
    repaired,
    scan_servers,
    write_record,
)
from redline.record.files import make_dir
from redline.rig.process import boot_id, identify
from redline.rig.processes import read_processes

_POLL_S: Final = 0.03
_SUPERVISOR_START_S: Final = 30.0
_UNFINISHED_S: Final = 3600.0
KEPT_ENDED_SERVERS: Final = 20


def register(servers_dir: Path, plan: LaunchPlan) -> tuple[Path, ServerRecord]:
    """Make the folder of a server to be, owned by this process; nothing is started yet.

    Raises:
        AccessError, DiskSpaceError: its folder cannot be made.
    """
    prune(servers_dir)
    now, mono_ns = time.time(), time.monotonic_ns()
    server_id = time.strftime("%Y%m%d-%H%M%S", time.localtime(now)) + f"-{secrets.token_hex(2)}"
    earlier = list_servers(servers_dir)
    directory = make_dir(servers_dir / server_id)
    record = ServerRecord(
        schema_version=SCHEMA,
        server_id=server_id,
        slug=plan.slug,
        url=plan.url,
        port=plan.port,
        state=ServerState.PLANNED,
        served_model=plan.served_model,
        engine=plan.engine,
        engine_version=plan.engine_version,
        created_at=now,
        changed_at=now,
        form=plan.form,
        sequence=max((record.sequence for _, record in earlier), default=0) + 1,
        boot_id=boot_id(),
        created_mono_ns=mono_ns,
        changed_mono_ns=mono_ns,
        owner=identify(os.getpid()),
    )
    write_plan(directory, plan)
    write_record(directory, record)
    append_event(directory, ServerState.PLANNED, "planned")
    return directory, record


def advance(directory: Path, state: ServerState, text: str) -> ServerRecord:
    """Bring a server that this process prepares into a later state of preparation, or to its end.

    Raises:
        FaultError: the state file is gone.
        AccessError, DiskSpaceError: it cannot be written.
    """
    record = _read(directory)
    final = state in (ServerState.FAILED, ServerState.STOPPED)
    moved = replace(
        record,
        state=state,
        changed_at=time.time(),
        changed_mono_ns=time.monotonic_ns(),
        reason=text if final else None,
        ended=final,
    )
    append_event(directory, state, text)
    write_record(directory, moved)
    return moved


def start(directory: Path, environ: Mapping[str, str]) -> None:
    """Start a registered server and return once its supervisor is on record. It outlives the calling process.

    Raises:
        EngineStartError: the supervisor itself did not start.
    """
    advance(directory, ServerState.STARTING, "starting the supervisor")
    with (directory / SUPERVISOR_LOG).open("ab") as log:
        try:
            subprocess.run(
                [sys.executable, "-P", "-m", "redline.launch.supervisor", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environ},
                start_new_session=True,
                timeout=_SUPERVISOR_START_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            record = _read(directory)
            if record.supervisor is None:
                advance(directory, ServerState.FAILED, "its supervisor did not start")
            raise EngineStartError(
                f"The supervisor did not start: {error}.", next_step=f"See {directory / SUPERVISOR_LOG}."
            ) from None


def follow(
    directory: Path, tick_s: float | None = None
) -> Generator[tuple[ServerRecord, dict[str, Any] | None], None, ServerRecord]:
    """Yield each new line of a server's history; return its record once it is ready, stopped or failed.

    A yielded record may lag behind its line; the returned one does not. With `tick_s`, None is yielded for the line
    each time that span passes without one.

    Raises:
        FaultError: the state file is gone.
    """
    seen, size, ticked = 0, -1, time.monotonic()
    while True:
        record = repaired(directory, _read(directory))
        now_size = _size(directory / EVENTS_FILE)
        if now_size != size:
            history = read_history(directory)
            for event in history[seen:]:
                yield record, event
            seen, size, ticked = len(history), now_size, time.monotonic()
        if not record.running or record.state is ServerState.READY:
            return record
        if tick_s is not None and time.monotonic() - ticked >= tick_s:
            ticked = time.monotonic()
            yield record, None
        time.sleep(_POLL_S)


def _read(directory: Path) -> ServerRecord:
    record = read_record(directory)
    if record is None:
        raise FaultError(f"{directory} lost its state file.", next_step="Start the server again.")
    return record


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def running_servers(servers_dir: Path) -> list[tuple[Path, ServerRecord]]:
    """Return the servers that run now; records left behind by a kill or a power cut are put right first."""
    current = [(folder, repaired(folder, record)) for folder, record in list_servers(servers_dir)]
    return [(folder, record) for folder, record in current if record.running]


def prune(servers_dir: Path) -> None:
    """Remove the folders of all but the latest ended servers, and those that a kill left without a state."""
    servers, unreadable = scan_servers(servers_dir)
    table = None
    ended = [(folder, record) for folder, record in servers if not record.running]
    for folder, record in ended[:-KEPT_ENDED_SERVERS]:
        table = table or read_processes()
        if record.ended or not family_of(folder, record, table).members:
            shutil.rmtree(folder, ignore_errors=True)
    for item in unreadable:
        if time.time() - item.folder.stat().st_mtime > _UNFINISHED_S and not any(item.folder.glob("*.json")):
            shutil.rmtree(item.folder, ignore_errors=True)
