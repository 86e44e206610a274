"""Ending servers, and the proof of it; finding engines that outlived their supervisor."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from redline.errors import FaultError, RedlineError
from redline.launch.docker import end_container, find_containers
from redline.launch.family import Family, end_family, family_of, find_family
from redline.launch.plan_file import read_plan
from redline.launch.state import (
    SCHEMA,
    ServerRecord,
    ServerState,
    append_event,
    list_servers,
    read_history,
    read_record,
    repaired,
    write_record,
)
from redline.rig.gpu_memory import GpuHold, gpu_holds
from redline.rig.ports import can_bind
from redline.rig.process import ProcessId
from redline.rig.processes import ProcessTable, read_processes

_POLL_S: Final = 0.03
_BEYOND_ENGINE_S: Final = 45.0
_ORPHAN_GRACE_S: Final = 6.0
_PORT_FREE_S: Final = 3.0
_GPU_FREE_S: Final = 15.0
_SUPERVISOR_APPEARS_S: Final = 5.0
_DIES_WITH_IT_S: Final = 0.5
_SUPERVISOR_DIES_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """Proof of a stop: how it went, whether the port is free, what memory the processes had held and still hold.

    `gpu_released_bytes` and `gpu_left_bytes` are 0 where no GPU is in play. `outlived` names processes that had
    outlived their supervisor.
    """

    server_id: str
    slug: str
    port: int
    port_free: bool
    released_bytes: int
    seconds: float
    gpu_released_bytes: int = 0
    gpu_left_bytes: int = 0
    outlived: str = ""

    @property
    def clean(self) -> bool:
        """Whether port and GPU memory were seen to be free afterwards."""
        return self.port_free and self.gpu_left_bytes == 0


@dataclass(frozen=True, slots=True)
class Orphan:
    """An engine that outlived its supervisor: a native one by its processes, a container by its id."""

    folder: Path
    record: ServerRecord
    family: Family
    container: str | None = None

    def describe(self) -> str:
        """Return it in words."""
        return f"container {self.container[:12]}" if self.container else self.family.describe()


def find_orphans(servers_dir: Path, table: ProcessTable | None = None) -> list[Orphan]:
    """Return the engines whose supervisor is gone and of which something is left; docker is asked only if need be.

    Records are put right on the way.
    """
    suspects = []
    for folder, record in list_servers(servers_dir):
        current = repaired(folder, record)
        if not current.ended and not current.supervised and current.supervisor is not None:
            suspects.append((folder, current))
    if not suspects:
        return []
    rows = table if table is not None else read_processes()
    containers = _containers() if any(record.form == "docker" for _, record in suspects) else {}
    found = []
    for folder, record in suspects:
        container = containers.get(record.server_id) if containers is not None else None
        family = family_of(folder, record, rows)
        if family.members:  # what is tied to its supervisor may be about to end: look again before it is called left
            time.sleep(_DIES_WITH_IT_S)
            family = family_of(folder, record)
        if family.members or container:
            found.append(Orphan(folder, record, family, container))
        elif record.form != "docker" or containers is not None:
            _close(folder, record)
    return found


def _containers() -> dict[str, str] | None:
    try:
        return find_containers()
    except RedlineError:
        return None  # docker does not answer: what it holds stays unknown, and is asked again next time


def stop(directory: Path, record: ServerRecord, *, now: bool = False) -> Stopped:
    """Stop a server and return only when its processes are gone; only processes that redline started are touched.

    Requests in flight are waited for as the plan says, unless `now`.

    Raises:
        FaultError: a process would not end.
    """
    steps = stopping(directory, record, now=now)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            proof: Stopped = end.value
            return proof


def stopping(directory: Path, record: ServerRecord, *, now: bool = False) -> Generator[str, None, Stopped]:
    """Stop a server as `stop` does, and yield what it waits for."""
    began = time.monotonic()
    record = _with_supervisor(directory, read_record(directory) or record)
    family = family_of(directory, record)
    held, on_gpu = family.resident_bytes, gpu_holds(family.pids)
    outlived = ""
    supervisor = record.supervisor
    if supervisor is not None and supervisor.alive():
        supervisor.send(signal.SIGINT if now else signal.SIGTERM)
        supervisor.send(signal.SIGCONT)  # one that somebody suspended would hear nothing
        yield from _await_end(directory, supervisor)
        if supervisor.alive():
            yield "its supervisor does not answer and is killed"
            _kill(record, supervisor)
            left = family_of(directory, record)
            outlived = left.describe() if left.members else ""
    elif family.members:
        outlived = family.describe()
    current = read_record(directory) or record
    if not current.ended:
        outlived = outlived or ("" if current.container is None else f"container {current.container[:12]}")
        _end_left(directory, repaired(directory, current))
    return _proof(record, began, held, on_gpu, outlived)


def _kill(record: ServerRecord, supervisor: ProcessId) -> None:
    supervisor.send(signal.SIGKILL)
    if not _wait(lambda: not supervisor.alive(), _SUPERVISOR_DIES_S):
        raise FaultError(
            f"The supervisor of {record.slug}, process {supervisor.pid}, would not end.",
            next_step="See its supervisor.log. A restart of the machine frees it.",
        )


def _with_supervisor(directory: Path, record: ServerRecord) -> ServerRecord:
    """Return the record once its supervisor has written itself down, which takes a moment after `start`."""
    deadline = time.monotonic() + _SUPERVISOR_APPEARS_S
    while record.state is ServerState.STARTING and record.supervisor is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        record = read_record(directory) or record
    return record


def _await_end(directory: Path, supervisor: ProcessId) -> Iterator[str]:
    """Wait for a supervisor to end its engine: as long as the plan's own limits allow, and some more."""
    plan = read_plan(directory)
    limit_s = _BEYOND_ENGINE_S + (plan.stop.grace_s + plan.stop.drain_s if plan else 60.0)
    deadline, seen = time.monotonic() + limit_s, len(read_history(directory))
    while supervisor.alive() and time.monotonic() < deadline:
        history = read_history(directory)
        for event in history[seen:]:
            yield str(event["text"])
        seen = len(history)
        time.sleep(_POLL_S)


def end_orphan(orphan: Orphan) -> Stopped:
    """End what is left of an engine whose supervisor is gone.

    Raises:
        FaultError: something would not end.
        DockerMissingError: its container cannot be ended because docker does not answer.
    """
    began = time.monotonic()
    held, on_gpu = orphan.family.resident_bytes, gpu_holds(orphan.family.pids)
    _end_left(orphan.folder, orphan.record, orphan.container)
    return _proof(orphan.record, began, held, on_gpu, orphan.describe())


def _end_left(directory: Path, record: ServerRecord, container: str | None = None) -> None:
    if record.running and record.supervisor is None:
        return  # in preparation: there is no engine yet
    gone = end_family(lambda: family_of(directory, record), record.engine_process, _ORPHAN_GRACE_S)
    reference = container or record.container or (f"redline-{record.server_id}" if record.form == "docker" else None)
    if reference is not None:
        gone = end_container(reference, _ORPHAN_GRACE_S) and gone
    if not gone:
        left = family_of(directory, record)
        raise FaultError(
            f"{left.describe() if left.members else f'container {reference}'} of {record.slug} would not end.",
            next_step="Look at it with ps; it may wait for a driver or a disk. A restart of the machine frees it.",
        )
    _close(directory, record)


def _close(directory: Path, record: ServerRecord) -> None:
    """Write down that nothing is left of a server."""
    if record.schema_version > SCHEMA or record.running:
        return
    append_event(directory, record.state, "nothing of it is left")
    write_record(directory, replace(record, ended=True, schema_version=SCHEMA))


def _proof(record: ServerRecord, began: float, held: int, on_gpu: tuple[GpuHold, ...], outlived: str) -> Stopped:
    _wait(lambda: can_bind(record.host, record.port), _PORT_FREE_S)
    released = sum(item.used_bytes for item in on_gpu)
    pids = tuple(item.pid for item in on_gpu)
    if on_gpu:  # a driver frees memory a moment after the process is gone
        _wait(lambda: not gpu_holds(pids), _GPU_FREE_S)
    left = sum(item.used_bytes for item in gpu_holds(pids)) if on_gpu else 0
    return Stopped(
        server_id=record.server_id,
        slug=record.slug,
        port=record.port,
        port_free=can_bind(record.host, record.port),
        released_bytes=held,
        seconds=time.monotonic() - began,
        gpu_released_bytes=released - left,
        gpu_left_bytes=left,
        outlived=outlived,
    )


def resident_bytes(record: ServerRecord, table: ProcessTable | None = None) -> int:
    """Return the memory that a server's processes hold now."""
    rows = table if table is not None else read_processes()
    return find_family(record.server_id, record.engine_process, (), rows).resident_bytes


def own_pids(servers: list[tuple[Path, ServerRecord]]) -> frozenset[int]:
    """Return the process ids of the engines of servers, supervisors included."""
    table = read_processes()
    pids = {os.getpid()}
    for folder, record in servers:
        pids |= set(family_of(folder, record, table).pids)
        if record.supervisor is not None:
            pids.add(record.supervisor.pid)
    return frozenset(pids)


def _wait(condition: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(_POLL_S)
    return condition()
