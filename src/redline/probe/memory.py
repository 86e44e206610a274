"""The memory that a server's processes hold, while it serves. Knows processes, and nothing of growth.

For an endpoint that redline did not start the process is the one that listens on its port, if it is on this machine
and this user may see it.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from redline.probe.gpu import gpu_memory_bytes
from redline.rig.ports import find_port_holder
from redline.rig.process import ProcessId, identify

_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySample:
    """What a process and its children hold, and which process it was. None where nothing could be seen."""

    resident_bytes: int | None = None
    gpu_bytes: int | None = None
    process: ProcessId | None = None


class ServerMemory:
    """Watches the processes behind a URL. A process that ended is looked for again: a new one is another server."""

    def __init__(self, url: str, pid: int | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._process = identify(pid) if pid else None

    def sample(self) -> MemorySample:
        """Return what the server holds now."""
        process = self.process()
        if process is None:
            return MemorySample()
        try:
            leader = psutil.Process(process.pid)
            family = (leader, *leader.children(recursive=True))
            held = sum(int(member.memory_info().rss) for member in family)
        except psutil.Error:
            return MemorySample()
        gpu = gpu_memory_bytes(frozenset(member.pid for member in family))
        return MemorySample(resident_bytes=held, gpu_bytes=gpu, process=process)

    def process(self) -> ProcessId | None:
        """Return the process that serves now, None where it cannot be seen."""
        if self._process is None or not self._process.alive():
            self._process = self._listener()
        return self._process

    def swapped(self) -> int | None:
        """Return how much of the server's memory is swapped out, None where its processes cannot be seen."""
        process = self.process()
        if process is None:
            return None
        try:
            leader = psutil.Process(process.pid)
            family = (leader, *leader.children(recursive=True))
            return sum(_swapped_bytes(process.pid) for process in family)
        except (psutil.Error, OSError):
            return None

    def _listener(self) -> ProcessId | None:
        if self._host not in _LOCAL or not self._port:
            return None
        holder = find_port_holder("127.0.0.1" if self._host == "localhost" else self._host, self._port)
        return identify(holder.pid) if holder and holder.pid else None


def _swapped_bytes(pid: int) -> int:
    """Return a process's VmSwap (proc_pid_status(5)), 0 where the kernel gives none."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    found = next((line.split()[1] for line in text.splitlines() if line.startswith("VmSwap:")), "0")
    return int(found) * 1024
