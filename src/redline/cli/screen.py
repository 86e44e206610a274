"""Lines with a label, and one line of progress below them on a terminal. Elsewhere progress becomes plain lines."""

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Final, Self

import click

_CLEAR: Final = "\r\x1b[2K"


class Screen:
    """Writes to standard output; as a context manager it leaves the terminal clean whatever happens."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._live = sys.stdout.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self._showing = False
        self._last_step = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def line(self, label: str, text: str, *, colour: str | None = None) -> None:
        """Write one finished line: a label of eight columns, then the text."""
        self._clear()
        if not self._quiet:
            click.echo(f"  {click.style(f'{label:<8}', fg=colour)} {text}")

    def text(self, text: str = "") -> None:
        """Write one line as it is."""
        self._clear()
        if not self._quiet:
            click.echo(text)

    def progress(self, label: str, text: str, *, step: str) -> None:
        """Show what is going on. Without a terminal a line appears only when `step` changes."""
        if self._quiet:
            return
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write(_CLEAR + f"  {label:<8} {text}"[:width])
            sys.stdout.flush()
            self._showing = True
        elif step != self._last_step:
            click.echo(f"  {label:<8} {step} ...")
        self._last_step = step

    def _clear(self) -> None:
        if self._showing:
            sys.stdout.write(_CLEAR)
            sys.stdout.flush()
            self._showing = False


def program() -> str:
    """Return how this user starts redline: `redline` when it is on PATH, else the path they would type."""
    found = shutil.which("redline")
    own = Path(sys.argv[0])
    if found or own.name != "redline":
        return "redline"
    with contextlib.suppress(ValueError):
        return str(own.resolve().relative_to(Path.cwd()))
    return str(own)
