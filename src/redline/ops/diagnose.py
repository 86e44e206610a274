"""Diagnosing a log: from a file, from standard input, or of a server of ours."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from redline.engine.diagnose import Diagnosis, diagnose
from redline.engine.log_text import split_lines
from redline.errors import AccessError
from redline.launch.state import LOG_FILE
from redline.settings import Settings

_CHUNK_BYTES: Final = 1 << 20
STANDARD_INPUT: Final = "-"


def diagnose_file(name: str, engine: str | None, facts: Mapping[str, object] | None = None) -> Diagnosis:
    """Return the diagnosis of a log file, or of standard input when the name is `-`.

    Raises:
        AccessError: the file cannot be read.
    """
    if name == STANDARD_INPUT:
        return diagnose(split_lines(_chunks(sys.stdin.buffer)), engine, facts)
    try:
        with Path(name).open("rb") as file:
            return diagnose(split_lines(_chunks(file)), engine, facts)
    except OSError as error:
        raise AccessError(
            f"{name} cannot be read: {error.strerror}.",
            next_step="Give the path of a log, or `-` and the log on standard input.",
        ) from None


def diagnose_server(settings: Settings, name: str | None) -> tuple[Path, Diagnosis]:
    """Return log and diagnosis of a server: the running one, or else the one that ended last.

    Raises:
        NoServerError: there never was one.
    """
    from redline.ops.servers import latest_server

    folder, record = latest_server(settings, name)
    return folder / LOG_FILE, diagnose_file(str(folder / LOG_FILE), record.engine)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk
