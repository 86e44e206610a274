"""Prints what an engine prints when it starts, phase by phase, and stops where the scenario says. Knows no HTTP."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from redline.fake.scenario import Dialect, Scenario
from redline.fake.typed_yaml import DataError, load_typed

_DATA: Final = Path(__file__).parent / "data"
_HUGE_BYTES: Final = 10 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a log, with the engine's file and line where it is written."""

    text: str
    source: str
    who: str = ""
    level: str = "INFO"
    raw: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of a boot."""

    name: str
    lines: tuple[LogLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BootScript:
    """A whole boot of one engine version."""

    version: str
    phases: tuple[Phase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Messages:
    """The lines of one fault, by dialect; a dialect that cannot have it has none."""

    vllm: tuple[LogLine, ...] = ()
    llamacpp: tuple[LogLine, ...] = ()


@cache
def boot_script(dialect: Dialect) -> BootScript:
    """Return the boot of an engine."""
    return load_typed(BootScript, _DATA / "boot" / f"{dialect}.yaml")


@cache
def messages(name: str, dialect: Dialect) -> tuple[LogLine, ...]:
    """Return the lines of a fault.

    Raises:
        DataError: there is no fault of that name for that engine.
    """
    import yaml

    from redline.fake.typed_yaml import parse_typed

    loaded = yaml.safe_load((_DATA / "messages.yaml").read_text(encoding="utf-8"))
    if name not in loaded:
        raise DataError(f"messages.yaml: there is no message {name!r}; there are: {', '.join(loaded)}")
    found: _Messages = parse_typed(_Messages, yaml.safe_dump(loaded[name]), f"messages.yaml, {name}")
    lines = found.vllm if dialect == "vllm" else found.llamacpp
    if not lines:
        raise DataError(f"messages.yaml: {name} has no lines for {dialect}")
    return lines


class BootLog:
    """Writes log lines as an engine would. `values` fill the braces of their texts."""

    def __init__(self, scenario: Scenario, dialect: Dialect, values: Mapping[str, object], pid: int) -> None:
        self._scenario, self._dialect, self._pid = scenario, dialect, pid
        self._values: dict[str, object] = {**values, "pid": pid}
        self._started = time.monotonic()

    async def phases(self) -> AsyncIterator[str]:
        """Print the phases one after another; yield each name when its lines are out.

        Of the phase in which the boot goes wrong only the first half is printed.
        """
        boot = self._scenario.boot
        for phase in boot_script(self._dialect).phases:
            slow = boot.slow_phase == phase.name
            line_s = boot.slow_s / max(len(phase.lines), 1) if slow else boot.line_s
            faulty = boot.fault is not None and boot.fault.phase == phase.name
            lines = [line for line in phase.lines if not boot.omits or boot.omits not in line.text]
            for line in lines[: (len(lines) + 1) // 2] if faulty else lines:
                await asyncio.sleep(line_s)
                self.write((line,))
            if phase.name == "weights":
                self._noise()
            yield phase.name

    def write(self, lines: tuple[LogLine, ...]) -> None:
        """Print lines."""
        for line in lines:
            sys.stdout.write(self._format(line) + "\n")
            sys.stdout.flush()

    def say(self, name: str, **values: object) -> None:
        """Print the lines of a message, with values of the moment in them."""
        self._values.update(values)
        self.write(messages(name, self._dialect))

    def _noise(self) -> None:
        """Print what a log may hold besides text."""
        noise = self._scenario.life.log_noise
        if noise == "invalid_utf8":
            sys.stdout.buffer.write(b"Loading tokenizer \xff\xfe\xc3\x28 merges \x00\x1b[31mred\xf0\x9f\n" * 20)
        elif noise == "huge_lines":
            sys.stdout.buffer.write(b"config: " + b"x" * _HUGE_BYTES + b"\n")
        sys.stdout.flush()

    def _format(self, line: LogLine) -> str:
        micros = int((time.monotonic() - self._started) * 1e6)
        seconds, micros = divmod(micros, 1_000_000)
        clock = f"{seconds // 60}.{seconds % 60:02d}.{micros // 1000:03d}.{micros % 1000:03d}"
        text = line.text.format(**self._values, clock=clock)
        if line.raw:
            return text
        place = line.source.rpartition("/")[2]  # vllm/logger.py _FORMAT: (name pid=N) LEVEL date [file:line] message
        return f"({line.who} pid={self._pid}) {line.level} {time.strftime('%m-%d %H:%M:%S')} [{place}] {text}"
