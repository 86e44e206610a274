"""Whether an engine that is booting has hung: it says nothing, and its processes do nothing either.

Compiling kernels can be silent for minutes and takes processor time; a deadlock that spins does too, and is caught by
the time limit of readiness alone.
"""

import os
import time
from collections.abc import Callable
from typing import Final

from redline.launch.family import Family

_BUSY_SHARE: Final = 0.02
_ON_DISK: Final = "D"  # proc_pid_stat(5): waiting for a disk counts as doing something


class QuietWatch:
    """Told of every output; asked now and then. Looks at processes twice a silence, no more."""

    def __init__(self, silence_s: float, find: Callable[[], Family]) -> None:
        self._silence_s, self._find = silence_s, find
        self._since = time.monotonic()
        self._half: tuple[float, int] | None = None

    def heard(self) -> None:
        """Take note of output."""
        self._since, self._half = time.monotonic(), None

    def hung(self) -> bool:
        """Whether the whole span passed in silence and its second half without work; False where nothing is seen."""
        quiet_s = time.monotonic() - self._since
        if quiet_s < self._silence_s / 2:
            return False
        if self._half is None:
            self._half = (time.monotonic(), _cpu_ticks(self._find()))
            return False
        if quiet_s < self._silence_s:
            return False
        begun, ticks = self._half
        family = self._find()
        spent_s = (_cpu_ticks(family) - ticks) / os.sysconf("SC_CLK_TCK")
        on_disk = any(row.state == _ON_DISK for row in family.members)
        if on_disk or spent_s > _BUSY_SHARE * (time.monotonic() - begun) or not family.members:
            self.heard()
            return False
        return True


def _cpu_ticks(family: Family) -> int:
    return sum(row.cpu_ticks for row in family.members)
