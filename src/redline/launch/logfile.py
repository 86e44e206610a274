"""An engine's output on disk, kept within bounds, and read back as its last lines."""

from pathlib import Path
from typing import Final

MAX_BYTES: Final = 8 * 2**20
_TAIL_BYTES: Final = 64 * 1024


class RotatingLog:
    """Appends bytes; at `MAX_BYTES` the file becomes `<name>.1` and a new one begins.

    A disk that is full loses log lines and never the server: what could not be written is counted in `lost_bytes`.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._file = path.open("ab", buffering=0)
        self.lost_bytes = 0

    def write(self, data: bytes) -> None:
        """Append bytes as they came from the engine."""
        try:
            if self._file.tell() + len(data) > self._max_bytes:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError:
            self.lost_bytes += len(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, the rotated part not included; nothing when there is no log."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]
