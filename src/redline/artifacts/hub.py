"""An artifact whose files lie in a hub repository: list, keep what is good, fetch the rest, verify, record.

Parts of downloads live in `.parts` of the models folder, under names that say whose content they are the beginning
of; they survive a kill, and go only when their file is whole or turned out wrong.
"""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from redline.artifacts.disk import Presence, look_at
from redline.artifacts.hub_access import HubAccess, need_library
from redline.artifacts.hub_download import download
from redline.artifacts.hub_errors import explain
from redline.artifacts.hub_listing import (
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

    Where the hub cannot be asked what the files must be, a checkpoint that is whole by its own index is taken as it
    is: `store.locate` says afterwards that it is not verified.

    Raises:
        MissingError: offline, or the hub's library is not installed, and files are missing.
        NetworkError: the hub refuses or cannot be reached; what was fetched is kept.
        DiskSpaceError, AccessError: the files cannot be written.
        IntegrityError: what came twice is not what was published.
    """
    return _Fetch(artifact, origin, models_dir, access, report).run()


def check_hub(
    artifact: Artifact, origin: Hub, models_dir: Path, access: HubAccess, report: Report
) -> tuple[tuple[str, FileState], ...]:
    """Return the state of every file, each read in full; nothing is fetched but the list of files, nor moved.

    Raises:
        MissingError: there is no list of the files, and the hub cannot be asked for one.
    """
    return _Fetch(artifact, origin, models_dir, access, report, afresh=True).check()


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One artifact being made whole."""

    artifact: Artifact
    origin: Hub
    models_dir: Path
    access: HubAccess
    report: Report
    afresh: bool = False

    @property
    def folder(self) -> Path:
        return self.models_dir / self.artifact.place

    @property
    def parts(self) -> Path:
        return self.models_dir / ".parts" / self.artifact.id

    def run(self) -> Path:
        make_dir(self.folder)
        try:
            listing = self._list()
        except IntegrityError:
            raise
        except MissingError as error:
            if look_at(self.models_dir, self.artifact).presence is not Presence.PRESENT:
                raise
            self._say(f"not verified: {error.message}")
            return self.folder
        listing = self._adopt(listing)
        missing = self._missing(listing)
        if missing and self.access.offline:
            raise _offline(self.artifact, self.origin, self.folder, [file.path for file in missing])
        if missing:
            self._fetch(listing, missing)
        return self.folder

    def check(self) -> tuple[tuple[str, FileState], ...]:
        make_dir(self.folder)
        listing = self._adopt(self._list())
        return tuple((file.path, self._state(file)) for file in listing.files)

    def _say(self, words: str) -> None:
        self.report(FileProgress(self.artifact.id, words, 0, None))

    def _list(self) -> HubListing:
        known = catalogue_listing(self.artifact, self.origin) or read_listing(self.folder, self.artifact, self.origin)
        if known is None:
            if self.access.offline:
                raise _offline(self.artifact, self.origin, self.folder, [])
            need_library()
            self._say(f"listing {self.origin.repo}")
            try:
                known = ask_hub(self.artifact, self.origin, self.access)
            except Exception as error:
                what = f"the list of files of {self.artifact.title}"
                raise explain(error, self.origin.repo, self.access, what) from None
        write_listing(self.folder, self.artifact, known)
        return known

    def _adopt(self, listing: HubListing) -> HubListing:
        """Return the listing with SHA-256 sums of files that are there under the git name the hub gives.

        The user may have brought them by other means.
        """
        for file in listing.files:
            path = self.folder / file.path
            if file.sha256 is None and file.git_sha1 and path.is_file() and git_blob_sha1(path) == file.git_sha1:
                listing = listing.with_file(replace(file, sha256=sha256_of(path)))
        write_listing(self.folder, self.artifact, listing)
        return listing

    def _missing(self, listing: HubListing) -> list[HubFile]:
        missing = []
        for file in listing.files:
            state = self._state(file)
            if state in (FileState.WRONG_SIZE, FileState.WRONG_HASH):
                set_aside(self.folder, self.folder / file.path, self.artifact.id, state, self.report)
            if state not in GOOD:
                missing.append(file)
        return missing

    def _state(self, file: HubFile) -> FileState:
        state = check_file(
            self.folder,
            file.spec,
            artifact=self.artifact.id,
            report=self.report,
            said_by=file.hash_from.value,
            afresh=self.afresh,
        )
        # The hub gives its git name, and it was not adopted under that name: so it has another.
        return FileState.WRONG_HASH if state is FileState.UNHASHED and file.git_sha1 else state

    def _fetch(self, listing: HubListing, missing: list[HubFile]) -> None:
        need_library()
        make_dir(self.parts)
        self._need_space(missing)
        total = sum(file.size_bytes for file in listing.files)
        present = total - sum(file.size_bytes for file in missing)
        meter = Meter()
        for file in missing:

            def on_bytes(have: int, before: int = present) -> None:
                done = before + have
                self.report(FileProgress(self.artifact.id, "fetch", done, total, meter.rate(done)))

            listing = listing.with_file(self._obtain(listing, file, on_bytes))
            write_listing(self.folder, self.artifact, listing)
            present += file.size_bytes
        shutil.rmtree(self.parts, ignore_errors=True)

    def _obtain(self, listing: HubListing, file: HubFile, on_bytes: Callable[[int], None]) -> HubFile:
        part = self._part(listing, file)
        for _ in range(2):
            download(listing, file, part, self.access, on_bytes, self._say)
            checked = self._judge(file, part)
            if checked is not None:
                make_dir((self.folder / file.path).parent)
                part.replace(self.folder / file.path)
                self._state(checked)
                return checked
            # Not kept aside, as a file of the user's own would be: gigabytes that anyone can fetch again.
            part.unlink()
            self._say(f"{file.path}: not as published, fetched again")
        raise IntegrityError(
            f"{file.path} of {listing.repo} came twice with the wrong content.",
            next_step="Something between you and the hub changes files; try another network or mirror (HF_ENDPOINT).",
        )

    def _part(self, listing: HubListing, file: HubFile) -> Path:
        content = file.sha256 or file.git_sha1 or listing.commit
        return self.parts / f"{file.path.replace('/', '__')}.{content[:16]}.part"

    def _judge(self, file: HubFile, part: Path) -> HubFile | None:
        """Return the file with its SHA-256, or None when its bytes are not those that were published."""
        if file.sha256 is not None:
            right = sha256_of(part, artifact=self.artifact.id, report=self.report) == file.sha256
            return file if right else None
        if file.git_sha1 is not None:
            return replace(file, sha256=sha256_of(part)) if git_blob_sha1(part) == file.git_sha1 else None
        return file

    def _need_space(self, missing: list[HubFile]) -> None:
        have = sum(path.stat().st_size for path in self.parts.glob("*.part"))
        missing_bytes = max(0, sum(file.size_bytes for file in missing) - have)
        margin = _SMALL_MARGIN_BYTES if missing_bytes < _SMALL_BYTES else _MARGIN_BYTES
        need, free = round(missing_bytes * _MARGIN_SHARE) + margin, shutil.disk_usage(self.models_dir).free
        if free < need:
            raise DiskSpaceError(
                f"{self.artifact.title} needs {format_bytes(need)} on the disk of {self.models_dir} "
                f"({format_bytes(missing_bytes)} to fetch, and room to work), and {format_bytes(free)} are free.",
                next_step="Free some space, or set MODEL_DIR to a folder on another disk.",
            )


def git_blob_sha1(path: Path) -> str:
    """Return the name that git gives a file's content: SHA-1 of `blob`, its size and its bytes (git-hash-object)."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _offline(artifact: Artifact, origin: Hub, folder: Path, lacking: list[str]) -> MissingError:
    names = ", ".join(lacking[:3]) + (f" and {len(lacking) - 3} more" if len(lacking) > 3 else "")
    revision = f" --revision {origin.revision}" if origin.revision else ""
    return MissingError(
        f"{artifact.title} is not complete in {folder}, and HF_HUB_OFFLINE forbids fetching"
        f"{f': {names} missing' if names else ''}.",
        next_step=f"On a machine with a network: hf download {origin.repo}{revision} --local-dir FOLDER; then copy "
        f"FOLDER to {folder}. Or unset HF_HUB_OFFLINE.",
    )
