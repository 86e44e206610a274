"""The stages of a whole report as they go: a table that is redrawn on a terminal, plain lines elsewhere."""

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import click

from redline.checks.stages import Stage, StageBegan, StageEnded, StageState, remaining_s, stage_left_s
from redline.ops.stages import StageEvent, StageProgress
from redline.units import format_seconds

_COLOURS: Final = {
    StageState.PASSED: "green",
    StageState.FAILED: "red",
    StageState.BROKEN: "red",
    StageState.OPEN: "yellow",
    StageState.INTERRUPTED: "yellow",
}
_WORDS: Final = 60


@dataclass(slots=True)
class Standing:
    """How far a report has come. Mutable: one view, one writer."""

    stages: tuple[Stage, ...]
    usual_s: dict[Stage, float]
    ended: dict[Stage, StageEnded] = field(default_factory=dict)
    running: StageProgress | None = None
    begun_s: float = 0.0
    seen: str = ""

    @property
    def share(self) -> float:
        """How much of the running stage is done."""
        now = self.running
        return min(1.0, now.number / now.total) if now is not None and now.total else 0.0

    def left_s(self, now_s: float) -> float | None:
        """Return what is left of the whole, or None."""
        elapsed = now_s - self.begun_s if self.running else 0.0
        return remaining_s(self.stages, list(self.ended), self.share, elapsed, self.usual_s)


def table_lines(standing: Standing, now_s: float) -> list[str]:
    """Return the table as text, a line a stage and one for the whole."""
    lines = []
    for stage in standing.stages:
        ended, usual = standing.ended.get(stage), standing.usual_s.get(stage)
        running = standing.running is not None and standing.running.stage is stage
        if ended is not None:
            took = "before" if ended.earlier else _span(ended.seconds)
            lines.append(_line(stage, ended.state.value.replace("_", " "), took, ended.reason))
        elif running and standing.running is not None:
            elapsed = now_s - standing.begun_s
            left = stage_left_s(standing.share, elapsed, usual)
            at = [_count(standing.running), standing.running.words] if standing.running.number else ["begins"]
            at += [_left(left)] if left else []
            lines.append(_line(stage, "running", _span(elapsed), ", ".join(word for word in at if word)))
        else:
            lines.append(_line(stage, "waiting", "", f"takes about {_span(usual)}" if usual else ""))
    left = standing.left_s(now_s)
    lines.append(
        f"  {_left(left) if left is not None else 'how long it will take is not known yet'}" if left != 0 else ""
    )
    return lines


def _line(stage: Stage, state: str, took: str, words: str) -> str:
    return f"  {stage.value:<8} {state:<11} {took:>8}  {' '.join(words.split())[:_WORDS]}".rstrip()


def _count(event: StageProgress) -> str:
    return f"{event.number}{f' of {event.total}' if event.total else ''}"


def _span(seconds: float) -> str:
    return format_seconds(seconds)


def _left(seconds: float) -> str:
    return f"about {_span(seconds)} left"


class StagesView:
    """Shows a report's stages; as a context manager it leaves the terminal as it should be whatever happens."""

    def __init__(self, stages: Sequence[Stage], usual_s: Mapping[Stage, float], *, quiet: bool) -> None:
        self._standing = Standing(tuple(stages), dict(usual_s))
        self._quiet = quiet
        self._live = sys.stdout.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self._drawn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._standing.running = None if error is None else self._standing.running
            self._draw()

    def show(self, event: StageEvent) -> None:
        """Take in one event."""
        standing = self._standing
        match event:
            case StageBegan():
                standing.begun_s, standing.seen = time.monotonic(), ""
                standing.running = StageProgress(stage=event.stage, number=0, total=None, words="")
                self._say(event.stage, f"begins   run {event.run_id}")
            case StageProgress():
                standing.running = event
                step = f"{100 * event.number // event.total // 25 * 25} %" if event.total else event.words
                if step not in (standing.seen, "0 %", "100 %"):
                    standing.seen = step
                    left = standing.left_s(time.monotonic())
                    tail = f"   {_left(left)}" if left is not None else ""
                    self._say(event.stage, f"{_count(event)}  {event.words}{tail}")
            case StageEnded():
                standing.ended[event.stage], standing.running = event, None
                took = f"of report {event.earlier}" if event.earlier else _span(event.seconds)
                state = click.style(event.state.value.replace("_", " "), fg=_COLOURS.get(event.state))
                self._say(event.stage, f"{state}   {took}   {event.reason}")
        if self._live:
            self._draw()

    def _say(self, stage: Stage, words: str) -> None:
        if not self._live and not self._quiet:
            click.echo(f"  {stage.value:<8} {words}")

    def _draw(self) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = [line[:width] for line in table_lines(self._standing, time.monotonic())]
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stdout.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)
