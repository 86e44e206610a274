"""The catalogue as seen from one rig: each tier with its fit, its files and its status."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redline.artifacts.store import artifact_folder, needed
from redline.catalog.resolve import resolve
from redline.catalog.types import Artifact, Catalog
from redline.plan.tier import plan_tier
from redline.plan.types import FitPlan, Verdict
from redline.rig.types import Rig
from redline.settings import Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRow:
    """A tier in one line. `files` is present, partial or absent, by size; `up` verifies the content."""

    slug: str
    model: str
    series: str
    depth: str
    weights: str
    drafter: str
    context: int
    verdict: Verdict
    need_bytes: int | None
    files: str
    download_bytes: int
    status: str
    port: int


def list_tiers(catalog: Catalog, rig: Rig, models_dir: Path, words: Sequence[str] = ()) -> tuple[TierRow, ...]:
    """Return the tiers that match every word, in the catalogue's order; overrides of the user do not count here."""
    rows = (_row(catalog, rig, models_dir, slug) for slug in catalog.tiers)
    return tuple(row for row in rows if all(_matches(row, word.lower()) for word in words))


def _row(catalog: Catalog, rig: Rig, models_dir: Path, slug: str) -> TierRow:
    tier = resolve(catalog, slug, Layers())
    fit: FitPlan = plan_tier(catalog, tier, rig)
    artifacts = needed(catalog, tier.artifact.value)
    present = [_present(models_dir, artifact) for artifact in artifacts]
    files = "present" if all(present) else "partial" if any(present) else "absent"
    return TierRow(
        slug=slug,
        model=tier.key.model,
        series=tier.key.series,
        depth=tier.key.depth.value,
        weights=catalog.artifacts[tier.artifact.value].quant,
        drafter=catalog.drafters[tier.drafter.value].kind.value,
        context=tier.max_model_len.value,
        verdict=fit.verdict,
        need_bytes=sum(device.need_bytes for device in fit.devices) if fit.devices else None,
        files=files,
        download_bytes=sum(a.size_bytes for a, there in zip(artifacts, present, strict=True) if not there),
        status=tier.status.value,
        port=tier.port.value,
    )


def _present(models_dir: Path, artifact: Artifact) -> bool:
    folder = artifact_folder(models_dir, artifact)
    return all(_size(folder / spec.path) == spec.size_bytes for spec in artifact.files)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _matches(row: TierRow, word: str) -> bool:
    if word == "fits":
        return row.verdict in (Verdict.FIT, Verdict.TIGHT)
    exact = {row.series, row.depth, row.status, row.drafter, row.weights.lower(), row.files}
    return word in exact or word in row.slug
