"""Reads an engine's output while it boots: stages, progress within them, lives begun. Keeps no log.

Lines may be of any length and any bytes; what is kept of an unfinished one is bounded.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from redline.engine.launch_plan import LaunchPlan
from redline.launch.state import PREPARING_STATES, ServerState

_KEPT_BYTES: Final = 16_384
_ORDER: Final = tuple(ServerState)


@dataclass(frozen=True, slots=True)
class StageBegan:
    """The engine has come to a later stage, as this line says."""

    state: ServerState
    line: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the current stage is, from 0 to 1."""

    share: float


@dataclass(frozen=True, slots=True)
class LifeBegan:
    """The engine began its life once more: the `number`-th time."""

    number: int


class BootWatch:
    """Turns output into what it says of the boot. Stages only go forward; a new life begins them anew."""

    def __init__(self, plan: LaunchPlan) -> None:
        known = {state.value: state for state in ServerState if state not in PREPARING_STATES}
        self._stages = [(known[item.stage], item) for item in plan.stages if item.stage in known]
        self._lives = dict.fromkeys(plan.boot_markers, 0)
        self._state = ServerState.STARTING
        self._pending = b""
        self._share = 0.0

    def feed(self, data: bytes) -> Iterator[StageBegan | Progress | LifeBegan]:
        """Yield what a piece of output says; a line cut in two is understood once its end is here."""
        lines = re.split(rb"[\r\n]+", self._pending + data)
        # The beginning of an endless line says what it is; its end is let go.
        self._pending = lines.pop()[:_KEPT_BYTES]
        for line in lines:
            yield from self._line(line[:_KEPT_BYTES].decode("utf-8", errors="replace"))

    def _line(self, line: str) -> Iterator[StageBegan | Progress | LifeBegan]:
        for marker in self._lives:
            if marker in line:
                self._lives[marker] += 1
                number = max(self._lives.values())
                if number == self._lives[marker]:
                    self._state = ServerState.STARTING
                    yield LifeBegan(number)
        for state, pattern in self._stages:
            if pattern.text in line and _ORDER.index(state) > _ORDER.index(self._state):
                self._state, self._share = state, 0.0
                yield StageBegan(state, line.strip()[:200])
            share = pattern.fraction(line) if state is self._state else None
            if share is not None and share > self._share:
                self._share = share
                yield Progress(share)
