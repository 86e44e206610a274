"""Starting and stopping servers from another process: make the folder, start its supervisor, follow it, end it."""

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from redline.engine.launch_plan import LaunchPlan
from redline.errors import EngineStartError, FaultError
from redline.launch.state import (
    PLAN_FILE,
    SCHEMA,
    SUPERVISOR_LOG,
    ServerRecord,
    ServerState,
    append_event,
    list_servers,
    read_history,
    read_record,
    repaired,
    write_record,
)
from redline.launch.supervisor import command_for, describe_plan
from redline.record.files import make_dir, write_atomic
from redline.rig.ports import can_bind

_POLL_S: Final = 0.03
_SUPERVISOR_START_S: Final = 20.0
_SUPERVISOR_END_S: Final = 60.0
_REGISTER_S: Final = 5.0
_ORPHAN_END_S: Final = 6.0
KEPT_ENDED_SERVERS: Final = 20


@dataclass(frozen=True, slots=True)
class Stopped:
    """Proof of a stop: how it went, whether the port is free, and how much memory the processes had held."""

    server_id: str
    slug: str
    port: int
    port_free: bool
    released_bytes: int
    seconds: float


def register(servers_dir: Path, plan: LaunchPlan) -> tuple[Path, ServerRecord]:
    """Make the folder of a server to be; nothing is started yet.

    Raises:
        AccessError, DiskSpaceError: its folder cannot be made.
    """
    prune(servers_dir)
    now = time.time()
    server_id = time.strftime("%Y%m%d-%H%M%S", time.localtime(now)) + f"-{secrets.token_hex(2)}"
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
    )
    write_atomic(directory / PLAN_FILE, describe_plan(plan))
    write_record(directory, record)
    append_event(directory, ServerState.PLANNED, "planned")
    return directory, record


def start(directory: Path, environ: Mapping[str, str]) -> None:
    """Start a registered server and return at once; follow it with `follow`. It outlives the calling process.

    Raises:
        EngineStartError: the supervisor itself did not start.
    """
    with (directory / SUPERVISOR_LOG).open("ab") as log:
        try:
            subprocess.run(
                command_for(directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environ},
                start_new_session=True,
                timeout=_SUPERVISOR_START_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineStartError(
                f"The supervisor did not start: {error}.", next_step=f"See {directory / SUPERVISOR_LOG}."
            ) from None


def follow(directory: Path) -> Generator[tuple[ServerRecord, dict[str, Any]], None, ServerRecord]:
    """Yield each new line of a server's history; return its record once it is ready, stopped or failed.

    A yielded record may lag behind its line; the returned one does not.

    Raises:
        FaultError: the state file is gone.
    """
    seen = 0
    while True:
        record = read_record(directory)
        if record is None:
            raise FaultError(f"{directory} lost its state file.", next_step="Start the server again.")
        record = repaired(directory, record)
        history = read_history(directory)
        for event in history[seen:]:
            yield record, event
        seen = len(history)
        if not record.running or record.state is ServerState.READY:
            return record
        time.sleep(_POLL_S)


def running_servers(servers_dir: Path) -> list[tuple[Path, ServerRecord]]:
    """Return the servers that run now; records left behind by a kill or a power cut are put right first."""
    current = [(folder, repaired(folder, record)) for folder, record in list_servers(servers_dir)]
    return [(folder, record) for folder, record in current if record.running]


def stop(directory: Path, record: ServerRecord) -> Stopped:
    """Stop a server and return only when its processes are gone; only processes that redline started are touched.

    Raises:
        FaultError: a process would not end.
    """
    started = time.monotonic()
    record = _with_supervisor(directory, record)
    held = resident_bytes(record)
    supervisor = record.supervisor
    if supervisor is not None and supervisor.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(supervisor.pid, signal.SIGTERM)
        _wait(lambda: not supervisor.alive(), _SUPERVISOR_END_S)
    end_orphan(record)
    for process in (record.supervisor, record.engine_process):
        if process is not None and process.alive():
            raise FaultError(f"Process {process.pid} of {record.slug} would not end.", next_step="Try `redline down`.")
    current = read_record(directory)
    if current is not None:
        repaired(directory, current)
    host = record.url.removeprefix("http://").rpartition(":")[0].strip("[]")
    _wait(lambda: can_bind(host, record.port), 2.0)
    return Stopped(
        record.server_id,
        record.slug,
        record.port,
        can_bind(host, record.port),
        held,
        time.monotonic() - started,
    )


def _with_supervisor(directory: Path, record: ServerRecord) -> ServerRecord:
    """Return the record once its supervisor has written itself down, which takes a moment after `start`."""
    deadline = time.monotonic() + _REGISTER_S
    while record.supervisor is None and record.running and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        record = read_record(directory) or record
    return record


def end_orphan(record: ServerRecord) -> None:
    """Wait for the engine of a dead supervisor to end by itself, and end its group when it does not."""
    engine = record.engine_process
    if engine is None or not engine.alive() or (record.supervisor is not None and record.supervisor.alive()):
        return
    if _wait(lambda: not engine.alive(), _ORPHAN_END_S):
        return
    if engine.alive():  # asked again right before: the pid must still be that process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(engine.pid, signal.SIGKILL)
    _wait(lambda: not engine.alive(), _ORPHAN_END_S)


def resident_bytes(record: ServerRecord) -> int:
    """Return the memory that the engine's processes hold now."""
    engine = record.engine_process
    if engine is None or not engine.alive():
        return 0
    try:
        leader = psutil.Process(engine.pid)
        return sum(int(process.memory_info().rss) for process in (leader, *leader.children(recursive=True)))
    except psutil.Error:
        return 0


def prune(servers_dir: Path) -> None:
    """Remove the folders of all but the latest ended servers."""
    ended = [folder for folder, record in list_servers(servers_dir) if not record.running]
    for folder in ended[:-KEPT_ENDED_SERVERS]:
        for path in folder.iterdir():
            path.unlink(missing_ok=True)
        folder.rmdir()


def _wait(condition: Any, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(_POLL_S)
    return bool(condition())
