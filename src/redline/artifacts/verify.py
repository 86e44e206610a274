"""Whether a file on disk is the published file.

A full hash is taken once; its result is kept beside the file with size, modification time and inode, so that the
next start costs no reading. Any of the three changing means that the file is read again.
"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path
from typing import Final

from redline.artifacts.progress import FileProgress, Report, ignore
from redline.catalog.types import FileSpec
from redline.record.files import read_json, write_atomic

RECEIPTS: Final = ".verified.json"
_CHUNK_BYTES: Final = 4 * 2**20


class FileState(StrEnum):
    """What is known of a file after looking."""

    ABSENT = "absent"
    VERIFIED = "verified"
    UNHASHED = "unhashed"  # size is right and its publisher gives no hash
    WRONG_SIZE = "wrong size"
    WRONG_HASH = "wrong hash"


def sha256_of(path: Path, *, artifact: str = "", report: Report = ignore) -> str:
    """Return the SHA-256 of a file as hexadecimal, reporting bytes as they are read."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            report(FileProgress(artifact, "verify", done, total))
    return digest.hexdigest()


def check_file(folder: Path, spec: FileSpec, *, artifact: str = "", report: Report = ignore) -> FileState:
    """Compare a file with its specification, reading it only when it changed since it was last verified."""
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
    if receipts.get(spec.path) == stamp:
        return FileState.VERIFIED
    if sha256_of(path, artifact=artifact, report=report) != spec.sha256:
        return FileState.WRONG_HASH
    receipts[spec.path] = stamp
    write_atomic(folder / RECEIPTS, json.dumps(receipts))
    return FileState.VERIFIED


def _receipts(folder: Path) -> dict[str, object]:
    found = read_json(folder / RECEIPTS)
    return found if isinstance(found, dict) else {}
