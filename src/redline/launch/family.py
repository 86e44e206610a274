"""The processes that belong to one server, and how they are ended. Everything else is a stranger and never touched.

A process belongs to it when it is the engine that its record names, by pid and start time; when the supervisor saw it
among the engine's and wrote it down; when it is in the engine's group or session and nothing speaks against that; or
when it carries the server's mark in its environment.
"""

import json
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redline.launch.state import PROCESSES_FILE, ServerRecord
from redline.record.files import read_json, write_atomic
from redline.rig.process import ProcessId, boot_id
from redline.rig.processes import ProcessRow, ProcessTable, descendants, environment_holds, read_processes

SERVER_VARIABLE: Final = "REDLINE_SERVER"
_POLL_S: Final = 0.02
_SECOND_GRACE_S: Final = 2.0
_KILL_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Family:
    """The running processes of one engine; the leader, when it lives, comes first."""

    members: tuple[ProcessRow, ...]

    @property
    def resident_bytes(self) -> int:
        """Memory they hold together; pages they share count once for each."""
        return sum(row.resident_bytes for row in self.members)

    @property
    def pids(self) -> tuple[int, ...]:
        """Their process ids."""
        return tuple(row.pid for row in self.members)

    def describe(self) -> str:
        """Return them in words: 'process 4121 (llama-server)'."""
        names = [f"{row.pid} ({row.name})" for row in self.members[:4]]
        more = f" and {len(self.members) - 4} more" if len(self.members) > 4 else ""
        return f"process{'es' if len(self.members) > 1 else ''} {', '.join(names)}{more}"


def find_family(
    server_id: str,
    leader: ProcessId | None,
    seen: Iterable[ProcessId],
    table: ProcessTable,
    *,
    roots: Iterable[int] = (),
) -> Family:
    """Return the processes of one server.

    `seen` are those the supervisor wrote down, `roots` further processes whose descendants belong to it.
    """
    if leader is None or leader.boot_id != boot_id():
        return Family(())
    wanted = {(item.pid, item.start_ticks) for item in (leader, *seen) if item.boot_id == leader.boot_id}
    found = {row.pid: row for row in table.values() if (row.pid, row.start_ticks) in wanted}
    at_number = table.get(leader.pid)
    if at_number is None or at_number.start_ticks == leader.start_ticks:
        marker = f"{SERVER_VARIABLE}={server_id}"
        for row in table.values():
            if leader.pid not in (row.group, row.session) or row.start_ticks < leader.start_ticks:
                continue
            # While the leader stands, its number is its own. Afterwards a stranger could in theory have been given the
            # number, and have left a group behind: then the mark in the environment must say whose it is.
            if at_number is not None or environment_holds(row.pid, marker):
                found[row.pid] = row
    for row in descendants(table, (*found, *roots)):
        if row.start_ticks >= leader.start_ticks:
            found[row.pid] = row
    running = [row for row in found.values() if row.running]
    return Family(tuple(sorted(running, key=lambda row: (row.pid != leader.pid, row.start_ticks, row.pid))))


def family_of(directory: Path, record: ServerRecord, table: ProcessTable | None = None) -> Family:
    """Return the processes of a server's engine that run now, whether its supervisor lives or not."""
    if record.ended or record.supervisor is None:
        return Family(())
    found = table if table is not None else read_processes()
    if record.engine_process is None:
        return _marked(record, found)
    family = find_family(record.server_id, record.engine_process, seen_processes(directory), found)
    if record.supervised:
        return family
    # One in a session of its own, that the supervisor did not live to write down, is known by its mark alone.
    known = {row.pid for row in family.members}
    return Family((*family.members, *(row for row in _marked(record, found).members if row.pid not in known)))


def _marked(record: ServerRecord, table: ProcessTable) -> Family:
    """Return the processes that carry the server's mark: its supervisor ended before it could name them all."""
    supervisor = record.supervisor
    if supervisor is None or supervisor.boot_id != boot_id() or record.form == "docker":
        return Family(())
    marker = f"{SERVER_VARIABLE}={record.server_id}"
    later = (row for row in table.values() if row.running and row.start_ticks >= supervisor.start_ticks)
    return Family(tuple(row for row in later if environment_holds(row.pid, marker)))


def remember_processes(directory: Path, family: Family) -> None:
    """Write down who belongs to the engine, so that those who outlive everyone else are known again.

    Raises:
        AccessError, DiskSpaceError: the file cannot be written.
    """
    rows = [[row.pid, row.start_ticks] for row in family.members]
    write_atomic(directory / PROCESSES_FILE, json.dumps({"boot_id": boot_id(), "processes": rows}) + "\n")


def seen_processes(directory: Path) -> tuple[ProcessId, ...]:
    """Return what `remember_processes` wrote; nothing when there is no such file or it is damaged."""
    data = read_json(directory / PROCESSES_FILE)
    try:
        boot = str(data["boot_id"])  # type: ignore[index]
        return tuple(ProcessId(int(pid), int(ticks), boot) for pid, ticks in data["processes"])  # type: ignore[index]
    except (TypeError, KeyError, ValueError):
        return ()


def end_family(
    find: Callable[[], Family], leader: ProcessId | None, grace_s: float, pump: Callable[[], None] = lambda: None
) -> bool:
    """End all processes that `find` returns, and say whether none is left.

    The leader alone is asked first: an engine that finishes its requests tells its own workers when to go. What is
    there after the grace period is asked itself, and killed soon after. `pump` is called all the while: an engine that
    cannot write its last words would not end.
    """
    if leader is not None and grace_s > 0 and leader.send(signal.SIGTERM):
        _wait(lambda: not leader.alive(), grace_s, pump)
    left = find()
    if not left.members:
        return True
    if grace_s > 0 and (leader is None or not leader.alive()):
        _send(left, signal.SIGTERM)
        if _wait(lambda: not find().members, min(grace_s, _SECOND_GRACE_S), pump):
            return True
    deadline = time.monotonic() + _KILL_WAIT_S
    while (left := find()).members and time.monotonic() < deadline:
        _send(left, signal.SIGKILL)  # again each time: an engine may still be starting processes
        pump()
        time.sleep(_POLL_S)
    return not left.members


def _send(family: Family, number: int) -> None:
    for row in family.members:
        row.identity.send(number)


def _wait(condition: Callable[[], bool], limit_s: float, pump: Callable[[], None]) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        pump()
        time.sleep(_POLL_S)
    return condition()
