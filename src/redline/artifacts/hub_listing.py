"""What a hub repository holds at one commit, and the record of it that is kept beside the files.

The record pins what was fetched: the commit, and for each file its size and hash with who said so. With it the next
start needs no network. The catalogue's own sizes and hashes come first; the hub's fill what it leaves open.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, Final

from redline.artifacts.hub_access import HubAccess
from redline.catalog.types import Artifact, FileSpec, Hub
from redline.errors import IntegrityError, NetworkError, RefusedError
from redline.record.files import read_json, write_atomic

SCHEMA: Final = 1
_TIMEOUT_S: Final = 10.0
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
# Of a safetensors checkpoint no engine reads these: other formats of the same weights, and what git keeps.
_LEFT_OUT: Final = frozenset({".bin", ".pt", ".pth", ".h5", ".msgpack", ".onnx", ".gguf", ".ckpt"})


class HashFrom(StrEnum):
    """Who says what a file's hash is."""

    CATALOGUE = "catalogue"
    HUB_LFS = "hub-lfs"
    HUB_GIT = "hub-git"  # the hub gives git's SHA-1; the SHA-256 kept is of bytes that had it
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file at a commit. `git_sha1` is git's name of the blob, for files that are no LFS ones."""

    path: str
    size_bytes: int
    sha256: str | None
    git_sha1: str | None
    hash_from: HashFrom

    @property
    def spec(self) -> FileSpec:
        """The file as every other part of redline knows files."""
        return FileSpec(path=self.path, size_bytes=self.size_bytes, sha256=self.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubListing:
    """The files of an artifact at a commit. `revision` is what was asked for, None for the newest."""

    repo: str
    revision: str | None
    commit: str
    files: tuple[HubFile, ...]

    def with_file(self, file: HubFile) -> "HubListing":
        """Return the listing with one file's entry replaced."""
        return replace(self, files=tuple(file if old.path == file.path else old for old in self.files))


def listing_path(folder: Path, artifact: Artifact) -> Path:
    """Return where an artifact's record lies; several artifacts may share a folder."""
    return folder / f".hub.{artifact.id}.json"


def read_listing(folder: Path, artifact: Artifact, origin: Hub) -> HubListing | None:
    """Return the record kept beside the files, or None where there is none of this repository and revision."""
    data = read_json(listing_path(folder, artifact))
    if not isinstance(data, Mapping) or data.get("schema_version") != SCHEMA:
        return None
    try:
        files = tuple(HubFile(**{**item, "hash_from": HashFrom(item["hash_from"])}) for item in data["files"])
        found = HubListing(repo=data["repo"], revision=data["revision"], commit=data["commit"], files=files)
    except (KeyError, TypeError, ValueError):
        return None
    wanted = {spec.path for spec in artifact.files}
    if found.repo != origin.repo or found.revision != origin.revision:
        return None
    return found if not wanted or wanted == {file.path for file in files} else None


def write_listing(folder: Path, artifact: Artifact, listing: HubListing) -> None:
    """Keep a listing beside the files."""
    path = listing_path(folder, artifact)
    write_atomic(path, json.dumps({"schema_version": SCHEMA, **asdict(listing)}, indent=1) + "\n")


def catalogue_listing(artifact: Artifact, origin: Hub) -> HubListing | None:
    """Return the listing that the catalogue alone gives, or None where it leaves a commit, size or hash open."""
    if not artifact.files or origin.revision is None or not _COMMIT.fullmatch(origin.revision):
        return None
    files = []
    for spec in artifact.files:
        if spec.size_bytes is None or spec.sha256 is None:
            return None
        files.append(
            HubFile(
                path=spec.path,
                size_bytes=spec.size_bytes,
                sha256=spec.sha256,
                git_sha1=None,
                hash_from=HashFrom.CATALOGUE,
            )
        )
    return HubListing(repo=origin.repo, revision=origin.revision, commit=origin.revision, files=tuple(files))


def ask_hub(artifact: Artifact, origin: Hub, access: HubAccess) -> HubListing:
    """Return the listing as the hub gives it now, checked against what the catalogue says.

    Raises:
        IntegrityError: the hub has another file under a name whose hash the catalogue knows.
        NetworkError: a file that the catalogue names is not there, or the answer is no hub's.
        RefusedError: the catalogue names no files, and a format that comes many to a repository.
        Exception: whatever the hub's library raises; `hub_errors.explain` turns it into redline's own.
    """
    from huggingface_hub import HfApi

    if artifact.format == "gguf" and not artifact.files:
        raise RefusedError(
            f"The catalogue does not say which files of {origin.repo} make {artifact.id}.",
            next_step="List them under `files` of the artifact; a repository of GGUF files holds many models.",
        )
    # Not `list_repo_tree`: that one waits out a 429 in silence, for minutes, where nothing can interrupt it.
    api = HfApi(endpoint=access.endpoint, token=access.find_token()[0] or False)
    info = api.model_info(origin.repo, revision=origin.revision, timeout=_TIMEOUT_S, files_metadata=True)
    if info.sha is None or info.siblings is None:
        raise NetworkError(
            f"{access.page(origin.repo)} names no commit or no files, so nothing can be pinned.",
            next_step="If HF_ENDPOINT is set, check that it is a hub.",
        )
    listing = HubListing(repo=origin.repo, revision=origin.revision, commit=info.sha, files=())
    found = {item.rfilename: item for item in info.siblings}
    if artifact.files:
        chosen = [_named(artifact, spec, found, listing) for spec in artifact.files]
    else:
        chosen = [item for name, item in sorted(found.items()) if _wanted(name)]
    there = [_from_hub(item, listing, access) for item in chosen]
    if artifact.files:
        there = [_settle(spec, file, listing) for spec, file in zip(artifact.files, there, strict=True)]
    return replace(listing, files=tuple(there))


def _from_hub(item: Any, listing: HubListing, access: HubAccess) -> HubFile:
    """Return a file of the hub's answer; where a mirror leaves size or hash out, the file's own headers are asked."""
    size, sha256, git_sha1 = item.size, item.lfs.sha256 if item.lfs else None, item.blob_id
    if size is None or (sha256 is None and git_sha1 is None):
        size, tag = _headers(item.rfilename, listing, access)
        sha256, git_sha1 = (tag, None) if _SHA256.fullmatch(tag) else (None, tag)
    if sha256 is not None or not _COMMIT.fullmatch(git_sha1 or ""):
        git_sha1 = None
    return HubFile(
        path=item.rfilename,
        size_bytes=size,
        sha256=sha256,
        git_sha1=git_sha1,
        hash_from=HashFrom.HUB_LFS if sha256 else HashFrom.HUB_GIT if git_sha1 else HashFrom.NOBODY,
    )


def _headers(path: str, listing: HubListing, access: HubAccess) -> tuple[int, str]:
    """Return size and entity tag of one file: the tag of an LFS file is its SHA-256 (X-Linked-Etag)."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(listing.repo, path, revision=listing.commit, endpoint=access.endpoint)
    found = get_hf_file_metadata(
        url, token=access.find_token()[0] or False, timeout=_TIMEOUT_S, endpoint=access.endpoint
    )
    if found.size is None:
        raise NetworkError(
            f"{access.endpoint} does not say how large {path} of {listing.repo} is.",
            next_step="If HF_ENDPOINT is set, check that it is a hub, or use another mirror.",
        )
    return found.size, found.etag or ""


def _named(artifact: Artifact, spec: FileSpec, found: Mapping[str, Any], listing: HubListing) -> Any:
    if spec.path in found:
        return found[spec.path]
    raise NetworkError(
        f"{spec.path} of {artifact.title} is no longer in {listing.repo} at {listing.commit[:12]}.",
        next_step="Its publisher removed or renamed it. Name a revision that has it, or choose another tier.",
    )


def _settle(spec: FileSpec, there: HubFile, listing: HubListing) -> HubFile:
    """Return the file with the catalogue's word where it has one; the two must not contradict each other."""
    if spec.size_bytes not in (None, there.size_bytes) or (
        spec.sha256 and there.sha256 and spec.sha256 != there.sha256
    ):
        raise IntegrityError(
            f"{spec.path} in {listing.repo} at {listing.commit[:12]} is not the file that the catalogue means: "
            f"{there.size_bytes} bytes, SHA-256 {there.sha256 or 'not given'}.",
            next_step="Its publisher replaced it. Nothing was fetched; name the revision you trust in the catalogue.",
        )
    if spec.sha256 is None:
        return there
    return replace(there, sha256=spec.sha256, hash_from=HashFrom.CATALOGUE)


def _wanted(path: str) -> bool:
    parts = PurePosixPath(path)
    return parts.suffix not in _LEFT_OUT and not any(part.startswith(".") for part in parts.parts)
