"""An engine's output on disk, kept within bounds, and read back as its last lines."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_BYTES: Final = 8 * 2**20
_TAIL_BYTES: Final = 256 * 1024
_LINE_CHARS: Final = 2000
ROTATED: Final = ".1"


class RotatingLog:
    """Appends bytes; at `MAX_BYTES` the file becomes `<name>.1` and a new one begins.

    A disk that is full loses log lines and never the server: what could not be written is counted in `lost_bytes`, and
    said in the log once there is room again.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._descriptor: int | None = None
        self._size = 0
        self._untold_bytes = 0
        self.lost_bytes = 0

    def write(self, data: bytes) -> None:
        """Append bytes as they came from the engine."""
        if self._untold_bytes:
            self._tell()
        lost = len(data) - self._append(data)
        self.lost_bytes += lost
        self._untold_bytes += lost

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _tell(self) -> None:
        note = f"\n[redline: {self._untold_bytes} bytes of this log could not be written]\n".encode()
        if self._append(note) == len(note):
            self._untold_bytes = 0

    def _append(self, data: bytes) -> int:
        """Return how many bytes reached the file; every step may fail, and the next call tries again."""
        written = 0
        try:
            if self._size and self._size + len(data) > self._max_bytes:
                self.close()
                self._path.replace(self._path.with_name(self._path.name + ROTATED))
                self._size = 0
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._size = os.fstat(self._descriptor).st_size
            while written < len(data):
                count = os.write(self._descriptor, memoryview(data)[written:])
                written += count
                self._size += count
        except OSError:
            pass
        return written


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, those before its rotation included; nothing when there is no log.

    Bytes that are no text become replacement characters, and very long lines are cut.
    """
    if lines <= 0:
        return []
    found = _last_lines(path, lines)
    if len(found) < lines:
        found = [*_last_lines(path.with_name(path.name + ROTATED), lines - len(found)), *found]
    return [
        line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]} ... ({len(line)} characters)" for line in found
    ]


def head(path: Path, lines: int) -> list[str]:
    """Return the first lines that are left of a log, those before its rotation first; nothing when there is no log."""
    before = path.with_name(path.name + ROTATED)
    try:
        with (before if before.is_file() else path).open("rb") as file:
            text = file.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line[:_LINE_CHARS] for line in text.splitlines()[:lines]]


def _last_lines(path: Path, lines: int) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]


def follow_file(path: Path) -> Iterator[bytes]:
    """Yield what is added to a log from now on, through rotations; empty bytes when there is nothing new for now."""
    descriptor = _open(path)
    try:
        if descriptor is not None:
            os.lseek(descriptor, 0, os.SEEK_END)
        while True:
            data = os.read(descriptor, 65536) if descriptor is not None else b""
            if not data and (descriptor is None or _moved(descriptor, path)):
                if descriptor is not None:
                    os.close(descriptor)
                descriptor = _open(path)
                data = os.read(descriptor, 65536) if descriptor is not None else b""
            yield data
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _moved(descriptor: int, path: Path) -> bool:
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except OSError:
        return False
