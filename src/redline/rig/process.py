"""Processes of this machine: how one is told from a later one of the same number, and how one is tied to its parent.

python -P -m redline.rig.process COMMAND [ARGUMENT ...]     run a command that the kernel ends with its parent
"""

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h; kept across execve for ordinary programs


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that cannot be mistaken for a later one: pid, start in clock ticks since boot, and the boot itself."""

    pid: int
    start_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return self.boot_id == boot_id() and _start_ticks(self.pid) == self.start_ticks


def identify(pid: int) -> ProcessId | None:
    """Return the identity of a running process, or None when it is gone."""
    ticks = _start_ticks(pid)
    return None if ticks is None else ProcessId(pid, ticks, boot_id())


def boot_id() -> str:
    """Return the kernel's name for the time since the machine last started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 2 is the name in parentheses and may hold spaces; field 3 is the state, field 22 the start time.
    rest = text[text.rfind(")") + 2 :].split()
    return None if rest[0] in ("Z", "X") else int(rest[19])


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, however that ends; end now if it already has."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def tied(argv: list[str]) -> list[str]:
    """Return the command that runs `argv` tied to its parent."""
    return [sys.executable, "-P", "-m", "redline.rig.process", *argv]


if __name__ == "__main__":
    die_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 -- an argument list, no shell
