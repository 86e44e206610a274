"""Files that are whole or absent, and locks that end with their holder. Knows paths and bytes, not what they mean."""

import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redline.errors import AccessError, DiskSpaceError, RedlineError, RefusedError


def make_dir(path: Path) -> Path:
    """Create a private folder and its parents.

    Raises:
        AccessError, DiskSpaceError: the folder cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise explain_os_error(error, path) from None
    return path


def write_atomic(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Replace a file in one step: readers see the old text or the new one, never a part.

    Raises:
        AccessError, DiskSpaceError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise explain_os_error(error, path) from None


def read_json(path: Path) -> Any | None:
    """Return a JSON file's value, or None where the file is absent, torn or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def explain_os_error(error: OSError, path: Path) -> RedlineError:
    """Turn an operating-system error about a path into redline's own."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskSpaceError(f"No room left on the disk of {path}.", next_step="Free some space and run it again.")
    return AccessError(
        f"{path} cannot be written: {reason}.",
        next_step=f"Make {path.parent} writable for you, or choose another folder (MODEL_DIR, XDG_STATE_HOME).",
    )


@contextmanager
def hold_lock(path: Path, busy_message: str) -> Iterator[None]:
    """Hold an advisory lock for the block; the kernel drops it when the holder ends, however it ends.

    Raises:
        RefusedError: another process holds it; the message names that process.
    """
    make_dir(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "unknown"
            raise RefusedError(
                f"{busy_message} (process {holder}).", next_step="Wait for it to finish, then run this again."
            ) from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
