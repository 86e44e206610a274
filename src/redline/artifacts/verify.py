"""Whether a file on disk is the published file.

A full hash is taken once; its result is kept beside the file with size, modification time, inode and who said what
the hash must be, so that the next start costs no reading. Any of them changing means that the file is read again.
"""

import hashlib
import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Final

from redline.artifacts.progress import FileProgress, Report, ignore
from redline.catalog.types import FileSpec
from redline.record.files import make_dir, read_json, write_atomic

RECEIPTS: Final = ".verified.json"
_CHUNK_BYTES: Final = 4 * 2**20


class FileState(StrEnum):
    """What is known of a file after looking."""

    ABSENT = "absent"
    VERIFIED = "verified"
    UNHASHED = "unhashed"  # size is right as far as it is known, and its publisher gives no hash
    WRONG_SIZE = "wrong size"
    WRONG_HASH = "wrong hash"


GOOD: Final = (FileState.VERIFIED, FileState.UNHASHED)


def sha256_of(path: Path, *, artifact: str = "", report: Report = ignore) -> str:
    """Return the SHA-256 of a file as hexadecimal, reporting bytes as they are read."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            report(FileProgress(artifact, "verify", done, total))
    return digest.hexdigest()


def check_file(
    folder: Path,
    spec: FileSpec,
    *,
    artifact: str = "",
    report: Report = ignore,
    said_by: str = "catalogue",
    afresh: bool = False,
) -> FileState:
    """Compare a file with its specification, reading it only when it changed since it was last verified.

    `said_by` is who gives the hash; the receipt says so too. `afresh` reads it in any case.
    """
    path = folder / spec.path
    try:
        status = path.stat()
    except OSError:
        return FileState.ABSENT
    if spec.size_bytes is not None and status.st_size != spec.size_bytes:
        return FileState.WRONG_SIZE
    if spec.sha256 is None:
        return FileState.UNHASHED
    stamp = [status.st_size, status.st_mtime_ns, status.st_ino, spec.sha256]
    receipts = _receipts(folder)
    kept = receipts.get(spec.path)
    if not afresh and isinstance(kept, list) and kept[:4] == stamp:
        return FileState.VERIFIED
    if sha256_of(path, artifact=artifact, report=report) != spec.sha256:
        return FileState.WRONG_HASH
    receipts[spec.path] = [*stamp, said_by]
    write_atomic(folder / RECEIPTS, json.dumps(receipts))
    return FileState.VERIFIED


def set_aside(folder: Path, path: Path, artifact: str, state: FileState, report: Report) -> None:
    """Move a file that is not as published out of the way, and say where it is."""
    rejected = make_dir(folder / "rejected") / f"{path.name}.{time.strftime('%Y%m%dT%H%M%S')}"
    path.replace(rejected)
    report(FileProgress(artifact, f"{path.name}: {state.value}, kept aside as {rejected}", 0, None))


def _receipts(folder: Path) -> dict[str, object]:
    found = read_json(folder / RECEIPTS)
    return found if isinstance(found, dict) else {}
