"""Reading an engine's output from a pipe without waiting for it. It knows nothing of what is written there."""

import os
from typing import IO, Final

_READ_BYTES: Final = 65536


def pipe_descriptor(pipe: IO[bytes] | None) -> int | None:
    """Return a pipe's descriptor, or None once it is closed or when there is none."""
    return pipe.fileno() if pipe is not None and not pipe.closed else None


def read_pipe(pipe: IO[bytes] | None) -> bytes | None:
    """Return what a non-blocking pipe holds now, or None when every process that could write has closed it."""
    descriptor = pipe_descriptor(pipe)
    if pipe is None or descriptor is None:
        return None
    try:
        data = os.read(descriptor, _READ_BYTES)
    except BlockingIOError:
        return b""
    if data == b"":
        pipe.close()
        return None
    return data
