"""All processes of this machine in one reading of /proc. Knows who started whom, not who belongs to which server."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from redline.rig.process import ProcessId, boot_id


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process: who it is, its parent, group and session, the memory it holds and the processor time it took."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    cpu_ticks: int
    start_ticks: int
    resident_bytes: int

    @property
    def running(self) -> bool:
        """False for a zombie: it holds nothing and cannot be signalled to any effect."""
        return self.state not in ("Z", "X")

    @property
    def identity(self) -> ProcessId:
        """The identity that outlives the pid."""
        return ProcessId(self.pid, self.start_ticks, boot_id())


ProcessTable = Mapping[int, ProcessRow]


def read_processes() -> dict[int, ProcessRow]:
    """Return every process by pid; those that end while this reads are left out."""
    rows = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 -- a Path for each of hundreds of names costs more than the reading
        if name.isdigit() and (row := read_process(int(name))) is not None:
            rows[row.pid] = row
    return rows


def read_process(pid: int) -> ProcessRow | None:
    """Return one process, or None when it is gone."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 4096).decode("utf-8", errors="replace")
    except OSError:
        return None
    finally:
        os.close(descriptor)
    # proc_pid_stat(5): field 2 is the name in parentheses and may hold spaces; `rest` begins with field 3.
    begin, end = text.find("("), text.rfind(")")
    rest = text[end + 2 :].split()
    return ProcessRow(
        pid=pid,
        name=text[begin + 1 : end],
        state=rest[0],
        parent=int(rest[1]),
        group=int(rest[2]),
        session=int(rest[3]),
        cpu_ticks=int(rest[11]) + int(rest[12]),
        start_ticks=int(rest[19]),
        resident_bytes=int(rest[21]) * _page_bytes(),
    )


def descendants(table: ProcessTable, roots: Iterable[int]) -> list[ProcessRow]:
    """Return the processes that were started, directly or not, by those of the given pids, without these."""
    children: dict[int, list[ProcessRow]] = {}
    for row in table.values():
        children.setdefault(row.parent, []).append(row)
    found: dict[int, ProcessRow] = {}
    pending = list(roots)
    while pending:
        for row in children.get(pending.pop(), ()):
            if row.pid not in found:
                found[row.pid] = row
                pending.append(row.pid)
    return list(found.values())


def environment_holds(pid: int, assignment: str) -> bool:
    """Whether a process was started with `NAME=value`; False where this user may not look, or a title covers it."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return assignment.encode() in data.split(b"\0")


def age_s(start_ticks: int) -> float:
    """Return the seconds since a process of this boot was started, by the kernel's own clock."""
    uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return max(0.0, uptime - start_ticks / os.sysconf("SC_CLK_TCK"))


@cache
def _page_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE")
