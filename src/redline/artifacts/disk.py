"""What lies in the models folder for a tier, judged without hashing: presence, damage, and a drafter's own words.

Knows files and checkpoints. `store` verifies and fetches; guards judge what is said here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from redline.artifacts.headers import (
    HeaderError,
    read_config,
    read_gguf_metadata,
    read_safetensors_header,
    read_shards,
)
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Artifact, Catalog

_DRAFT_KEYS: Final = ("dflash.block_size", "dflash.context_length")


class Presence(StrEnum):
    """How much of an artifact is there."""

    PRESENT = "present"
    PARTIAL = "partial"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactOnDisk:
    """One artifact as found: files there, missing, not whole, or outside the models folder."""

    artifact: str
    folder: str
    presence: Presence
    there: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOnDisk:
    """What a drafter's own files say of it; None where they say nothing."""

    path: str
    block_size: int | None
    context_max: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """All artifacts of a tier, weights first, and its external drafter's own words, where its files are there."""

    artifacts: tuple[ArtifactOnDisk, ...]
    draft: DraftOnDisk | None = None


def tier_artifacts(catalog: Catalog, tier: ResolvedTier) -> tuple[Artifact, ...]:
    """Return all that a tier serves with, each once: weights, their companions, drafter, projector.

    A drafter is left out where drafting is switched off, since nothing would load it.
    """
    drafter = catalog.drafters[tier.drafter.value]
    ids = [tier.artifact.value, tier.projector.value, drafter.artifact if tier.spec_n.value else None]
    found: dict[str, Artifact] = {}
    while ids:
        name = ids.pop(0)
        if name is not None and name not in found:
            found[name] = catalog.artifacts[name]
            ids.extend(found[name].companions)
    return tuple(found.values())


def look_at_tier(catalog: Catalog, tier: ResolvedTier, models_dir: Path) -> DiskFacts:
    """Return what is on disk for a tier. The drafter is looked at even where drafting is switched off."""
    drafter = catalog.drafters[tier.drafter.value]
    draft = catalog.artifacts[drafter.artifact] if drafter.artifact else None
    return DiskFacts(
        artifacts=tuple(look_at(models_dir, artifact) for artifact in tier_artifacts(catalog, tier)),
        draft=_read_draft(models_dir / draft.place, draft) if draft else None,
    )


def look_at(models_dir: Path, artifact: Artifact, *, headers: bool = True) -> ArtifactOnDisk:
    """Return what is there of one artifact. Where its files are not listed, its own index says what must be.

    Without `headers` a shard counts as whole when it is not empty, so that a list of all tiers stays quick.
    """
    folder = models_dir / artifact.place
    missing: list[str] = []
    damaged: list[str] = []
    there: list[str] = []
    for name, fault in _faults(folder, artifact, headers):
        (there if fault is None else missing if fault == "missing" else damaged).append(name)
    presence = Presence.PRESENT if not missing and not damaged else Presence.PARTIAL if there else Presence.ABSENT
    if damaged:
        presence = Presence.PARTIAL
    return ArtifactOnDisk(
        artifact=artifact.id,
        folder=str(folder),
        presence=presence,
        there=tuple(there),
        missing=tuple(missing),
        damaged=tuple(damaged),
        outside=tuple(name for name in (*there, *damaged) if _escapes(models_dir, folder / name)),
    )


def _faults(folder: Path, artifact: Artifact, headers: bool) -> Iterator[tuple[str, str | None]]:  # noqa: FBT001
    """Yield every file that must be there with what is wrong with it: None, `missing` or `damaged`."""
    if artifact.files:
        for spec in artifact.files:
            size = _size(folder / spec.path)
            wrong = size == 0 or (spec.size_bytes is not None and size != spec.size_bytes)
            yield spec.path, "missing" if size is None else "damaged" if wrong else None
        return
    yield "config.json", None if (folder / "config.json").is_file() else "missing"
    try:
        shards = read_shards(folder)
    except (HeaderError, OSError):
        yield "model.safetensors.index.json", "damaged"
        return
    for name in shards:
        size = _size(folder / name)
        if size is None:
            yield name, "missing"
            continue
        yield name, None if size and (not headers or _is_whole(folder / name, size)) else "damaged"


def _is_whole(path: Path, size: int) -> bool:
    try:
        return read_safetensors_header(path).file_bytes == size
    except (HeaderError, OSError):
        return False


def _read_draft(folder: Path, artifact: Artifact) -> DraftOnDisk | None:
    try:
        if artifact.format == "gguf":
            path = folder / artifact.files[0].path
            facts = read_gguf_metadata(path, _DRAFT_KEYS)
            block, context = (facts.get(key) for key in _DRAFT_KEYS)
        else:
            path = folder / "config.json"
            config = read_config(folder)
            if config is None:
                return None
            nested = config.get("dflash_config")
            # Some exports keep the block size at the top (turboderp-org/exllamav3#276).
            block = (nested if isinstance(nested, dict) else {}).get("block_size", config.get("block_size"))
            context = config.get("max_position_embeddings")
    except (HeaderError, OSError, IndexError):
        return None
    return DraftOnDisk(path=str(path), block_size=_whole(block), context_max=_whole(context))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _escapes(models_dir: Path, path: Path) -> bool:
    return not path.resolve().is_relative_to(models_dir.resolve())
