"""An artifact whose files lie in a hub repository: list, keep what is good, fetch the rest, verify, record.

Parts of downloads live in `.parts` of the models folder, under names that say whose content they are the beginning
of; they survive a kill, and go only when their file is whole or turned out wrong.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from redline.artifacts.hub_access import HubAccess, need_library
from redline.artifacts.hub_download import download
from redline.artifacts.hub_errors import explain
from redline.artifacts.hub_listing import (
    HashFrom,
    HubFile,
    HubListing,
    ask_hub,
    catalogue_listing,
    read_listing,
    write_listing,
)
from redline.artifacts.progress import FileProgress, Meter, Report
from redline.artifacts.verify import GOOD, FileState, check_file, set_aside, sha256_of
from redline.catalog.types import Artifact, FileSpec, Hub
from redline.errors import DiskSpaceError, IntegrityError, MissingError
from redline.record.files import make_dir
from redline.units import format_bytes

_MARGIN_SHARE: Final = 1.02
_SMALL_BYTES: Final = 10**9
_SMALL_MARGIN_BYTES: Final = 50_000_000
_MARGIN_BYTES: Final = 10 * 10**9  # a large model's engine compiles into caches of gigabytes next


def known_specs(folder: Path, artifact: Artifact, origin: Hub) -> tuple[FileSpec, ...]:
    """Return what is known of an artifact's files without asking anyone; empty where no list was ever had."""
    listing = catalogue_listing(artifact, origin) or read_listing(folder, artifact, origin)
    return tuple(file.spec for file in listing.files) if listing else artifact.files


def fetch_hub(artifact: Artifact, origin: Hub, models_dir: Path, access: HubAccess, report: Report) -> Path:
    """Make every file present and verified, fetching only what is missing; the caller holds the artifact's lock.

    Raises:
        MissingError: offline, or the hub's library is not installed, and files are missing.
        NetworkError: the hub refuses or cannot be reached; what was fetched is kept.
        DiskSpaceError, AccessError: the files cannot be written.
        IntegrityError: what came twice is not what was published.
    """
    folder = make_dir(models_dir / artifact.place)
    listing = _list(artifact, origin, folder, access, report)
    listing = _adopt(listing, folder, artifact, report)
    missing = _missing(listing, folder, artifact, report)
    if not missing:
        return folder
    if access.offline:
        raise _offline(artifact, origin, folder, [file.path for file in missing])
    need_library()
    parts = make_dir(models_dir / ".parts" / artifact.id)
    _need_space(models_dir, artifact, missing, parts)
    meter, present = Meter(), sum(file.size_bytes for file in listing.files if file not in missing)
    total = sum(file.size_bytes for file in listing.files)
    for file in missing:

        def on_bytes(have: int, before: int = present) -> None:
            report(FileProgress(artifact.id, "fetch", before + have, total, meter.rate(before + have)))

        listing = listing.with_file(_obtain(listing, file, folder, parts, access, artifact, report, on_bytes))
        write_listing(folder, listing)
        present += file.size_bytes
    shutil.rmtree(parts, ignore_errors=True)
    return folder


def _list(artifact: Artifact, origin: Hub, folder: Path, access: HubAccess, report: Report) -> HubListing:
    known = catalogue_listing(artifact, origin) or read_listing(folder, artifact, origin)
    if known is None:
        if access.offline:
            raise _offline(artifact, origin, folder, [spec.path for spec in artifact.files])
        need_library()
        report(FileProgress(artifact.id, f"listing {origin.repo}", 0, None))
        try:
            known = ask_hub(artifact, origin, access)
        except Exception as error:
            raise explain(error, origin.repo, access, f"the list of files of {artifact.title}") from None
    write_listing(folder, known)
    return known


def _adopt(listing: HubListing, folder: Path, artifact: Artifact, report: Report) -> HubListing:
    """Return the listing with SHA-256 sums of files that are there and have the git name the hub gives for them.

    The user may have brought them by other means; a file of another name is left to be found missing or wrong.
    """
    for file in listing.files:
        path = folder / file.path
        if file.sha256 is None and file.git_sha1 and path.is_file() and path.stat().st_size == file.size_bytes:
            if git_blob_sha1(path) == file.git_sha1:
                listing = listing.with_file(replace(file, sha256=sha256_of(path)))
            else:
                set_aside(folder, path, artifact.id, FileState.WRONG_HASH, report)
    write_listing(folder, listing)
    return listing


def _missing(listing: HubListing, folder: Path, artifact: Artifact, report: Report) -> list[HubFile]:
    missing = []
    for file in listing.files:
        state = check_file(folder, file.spec, artifact=artifact.id, report=report, said_by=file.hash_from.value)
        if state in (FileState.WRONG_SIZE, FileState.WRONG_HASH):
            set_aside(folder, folder / file.path, artifact.id, state, report)
        if state not in GOOD:
            missing.append(file)
    return missing


def _obtain(
    listing: HubListing,
    file: HubFile,
    folder: Path,
    parts: Path,
    access: HubAccess,
    artifact: Artifact,
    report: Report,
    on_bytes: Callable[[int], None],
) -> HubFile:
    part = _part(parts, file, listing)

    def on_wait(words: str) -> None:
        report(FileProgress(artifact.id, words, 0, None))

    for _ in range(2):
        download(listing, file, part, access, on_bytes, on_wait)
        checked = _judge(file, part, artifact, report)
        if checked is not None:
            make_dir((folder / file.path).parent)
            part.replace(folder / file.path)
            check_file(folder, checked.spec, said_by=checked.hash_from.value)
            return checked
        # Not kept aside, as a file of the user's own would be: gigabytes that anyone can fetch again.
        part.unlink()
        report(FileProgress(artifact.id, f"{file.path}: not as published, fetched again", 0, None))
    raise IntegrityError(
        f"{file.path} of {listing.repo} came twice with the wrong content.",
        next_step="Something between you and the hub changes files; try another network, or a mirror (HF_ENDPOINT).",
    )


def _judge(file: HubFile, part: Path, artifact: Artifact, report: Report) -> HubFile | None:
    """Return the file with its SHA-256, or None when its bytes are not those that were published."""
    if file.sha256 is not None:
        return file if sha256_of(part, artifact=artifact.id, report=report) == file.sha256 else None
    if file.git_sha1 is not None:
        return replace(file, sha256=sha256_of(part)) if git_blob_sha1(part) == file.git_sha1 else None
    return file if file.hash_from is HashFrom.NOBODY else None


def git_blob_sha1(path: Path) -> str:
    """Return the name that git gives a file's content: SHA-1 of `blob`, its size and its bytes (git-hash-object)."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _part(parts: Path, file: HubFile, listing: HubListing) -> Path:
    name = file.path.replace("/", "__")
    return parts / f"{name}.{(file.sha256 or file.git_sha1 or listing.commit)[:16]}.part"


def _need_space(models_dir: Path, artifact: Artifact, missing: Iterable[HubFile], parts: Path) -> None:
    have = sum(path.stat().st_size for path in parts.glob("*.part"))
    missing_bytes = max(0, sum(file.size_bytes for file in missing) - have)
    margin = _SMALL_MARGIN_BYTES if missing_bytes < _SMALL_BYTES else _MARGIN_BYTES
    need, free = round(missing_bytes * _MARGIN_SHARE) + margin, shutil.disk_usage(models_dir).free
    if free < need:
        raise DiskSpaceError(
            f"{artifact.title} needs {format_bytes(need)} on the disk of {models_dir} ({format_bytes(missing_bytes)} "
            f"to fetch, and room to work), and {format_bytes(free)} are free.",
            next_step="Free some space, or set MODEL_DIR to a folder on another disk.",
        )


def _offline(artifact: Artifact, origin: Hub, folder: Path, lacking: list[str]) -> MissingError:
    names = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    revision = f" --revision {origin.revision}" if origin.revision else ""
    return MissingError(
        f"{artifact.title} is not complete in {folder}, and HF_HUB_OFFLINE forbids fetching"
        f"{f': {names} missing' if names else ''}.",
        next_step=f"On a machine with a network: hf download {origin.repo}{revision} --local-dir FOLDER; then copy "
        f"FOLDER to {folder}. Or unset HF_HUB_OFFLINE.",
    )
