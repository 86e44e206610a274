"""One process of this machine: told from a later one of the same number, signalled safely, tied to its parent.

python -E -P process.py PARENT COMMAND [ARGUMENT ...]     run a command that the kernel ends with that parent
"""

import ctypes
import os
import signal
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h; kept across execve for ordinary programs
_PR_SET_CHILD_SUBREAPER: Final = 36


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process that cannot be mistaken for a later one: pid, start in clock ticks since boot, and the boot itself."""

    pid: int
    start_ticks: int
    boot_id: str

    def alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return self.boot_id == boot_id() and _start_ticks(self.pid) == self.start_ticks

    def send(self, number: int) -> bool:
        """Send a signal to this very process; False when it is gone. A later process of its number is never hit."""
        if self.boot_id != boot_id():
            return False
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        except OSError:  # a sandbox without this call: the moment between look and signal is the best there is
            return self._send_by_number(number)
        try:
            # The descriptor holds one process for good; only then is it asked whether it is the right one.
            if _start_ticks(self.pid) != self.start_ticks:
                return False
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def _send_by_number(self, number: int) -> bool:
        if not self.alive():
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


def identify(pid: int) -> ProcessId | None:
    """Return the identity of a running process, or None when it is gone."""
    ticks = _start_ticks(pid)
    return None if ticks is None else ProcessId(pid, ticks, boot_id())


@cache
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


def adopt_orphans() -> None:
    """Become the parent of this process's descendants whose own parent ends, so that none is out of sight."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent ends, however that ends; end now if it already has."""
    parent = parent or os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def tied(argv: list[str]) -> list[str]:
    """Return the command that runs `argv` tied to this process, which must be the one that starts it.

    The pid and start time of what runs then are those of the process started. -E and -P: what the engine's own
    environment or folder holds must not reach this interpreter.
    """
    return [sys.executable, "-E", "-P", str(Path(__file__).resolve()), str(os.getpid()), *argv]


def main() -> None:
    """Tie this process to the given parent, then become the command."""
    die_with_parent(int(sys.argv[1]))
    try:
        os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 -- an argument list, no shell
    except OSError as error:
        sys.exit(f"{sys.argv[2]} could not be started: {error.strerror}")


if __name__ == "__main__":
    main()
