"""The catalogue as seen from one rig: each tier with its fit, its files, its status, and what was measured of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redline.artifacts.disk import Presence, look_at, tier_artifacts
from redline.catalog.artifact import Packaged
from redline.catalog.explain import counts, evidence_of
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog, Evidence, EvidenceKind
from redline.errors import UsageError
from redline.plan.dispatch import plan_tier
from redline.plan.types import FitPlan, Verdict
from redline.rig.types import Rig
from redline.settings import Layers

_COMPARISON: Final = re.compile(r"(<=|>=|<|>|=)(\d[\d_.,]*)(k|m)?$")
_SCALES: Final = {None: 1, "k": 1000, "m": 1_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What was measured of a tier, with the engine it was measured on; None where nobody has published it.

    `counts` says whether it was made on the pinned engine, unpatched and as shipped; only then does it say anything
    about the tier as it is served here.
    """

    narrative_tok_s: float | None
    code_tok_s: float | None
    engine_version: str
    patched: bool
    setup: str
    rig: str
    date: str
    source: str
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRow:
    """A tier in one line. `files` is present, partial or absent, by size; `up` verifies the content."""

    slug: str
    model: str
    engine: str
    topology: str
    gpus: int
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
    speed: Speed | None


def list_tiers(catalog: Catalog, rig: Rig, models_dir: Path, words: Sequence[str] = ()) -> tuple[TierRow, ...]:
    """Return the tiers that match every word, in the catalogue's order; overrides of the user do not count here.

    Words: `fits`; a comparison of the context (`>=200k`); `gpu:2`; a status, series, depth, topology, engine, drafter
    or state of the files; else a part of the slug or of the model's name.

    Raises:
        UsageError: a comparison that is none.
    """
    tests = [(word.lower(), _context_test(word.lower())) for word in words]
    files = {
        artifact.id: look_at(models_dir, artifact, headers=False).presence for artifact in catalog.artifacts.values()
    }
    rows = [_row(catalog, rig, files, slug) for slug in catalog.tiers]
    return tuple(row for row in rows if all(_matches(catalog, row, word, test) for word, test in tests))


def _row(catalog: Catalog, rig: Rig, files: Mapping[str, Presence], slug: str) -> TierRow:
    tier = resolve(catalog, slug, Layers())
    fit: FitPlan = plan_tier(catalog, tier, rig)
    # What comes with redline is here as soon as redline is.
    artifacts = [item for item in tier_artifacts(catalog, tier) if not isinstance(item.origin, Packaged)]
    found = [files[artifact.id] for artifact in artifacts]
    whole = all(presence is Presence.PRESENT for presence in found)
    some = any(presence is not Presence.ABSENT for presence in found)
    return TierRow(
        slug=slug,
        model=tier.key.model,
        engine=tier.key.engine,
        topology=tier.key.topology,
        gpus=catalog.topologies[tier.key.topology].gpus,
        series=tier.key.series,
        depth=tier.key.depth.value,
        weights=catalog.artifacts[tier.artifact.value].quant,
        drafter=catalog.drafters[tier.drafter.value].kind.value,
        context=tier.max_model_len.value,
        verdict=fit.verdict,
        need_bytes=sum(device.need_bytes for device in fit.devices) if fit.devices else None,
        files="present" if whole else "partial" if some else "absent",
        download_bytes=sum(
            artifact.size_bytes
            for artifact, presence in zip(artifacts, found, strict=True)
            if presence is not Presence.PRESENT
        ),
        status=tier.status.value,
        port=tier.port.value,
        speed=speed_of(catalog, slug),
    )


def speed_of(catalog: Catalog, slug: str) -> Speed | None:
    """Return the decode rates to show for a tier: those that count if there are any, else the first published ones.

    A pair comes from one set of circumstances, so that prose and code can be compared.
    """
    rows = [
        row
        for row in evidence_of(catalog, slug)
        if row.metric in ("decode_narrative", "decode_code") and row.kind is not EvidenceKind.PROJECTED
    ]
    if not rows:
        return None
    first = next((row for row in rows if counts(catalog, row)), rows[0])
    pair = {row.metric: row.value for row in reversed(rows) if _circumstances(row) == _circumstances(first)}
    return Speed(
        narrative_tok_s=pair.get("decode_narrative"),
        code_tok_s=pair.get("decode_code"),
        engine_version=first.engine_version,
        patched=bool(first.patches),
        setup=first.setup,
        rig=first.rig,
        date=first.date,
        source=first.source,
        counts=counts(catalog, first),
    )


def _circumstances(row: Evidence) -> tuple[object, ...]:
    return (row.rig, row.engine_version, row.date, row.source, row.patches, row.setup)


def _context_test(word: str) -> tuple[str, float] | None:
    """Return the comparison that a word is, or None where it is another kind of word."""
    if not word.startswith(("<", ">", "=")):
        return None
    match = _COMPARISON.match(word)
    if match is None:
        raise UsageError(
            f"{word!r} compares nothing.", next_step="Write a context so: '>=200k' (200,000 tokens and more)."
        )
    return match[1], float(match[2].replace("_", "").replace(",", "")) * _SCALES[match[3]]


def _matches(catalog: Catalog, row: TierRow, word: str, test: tuple[str, float] | None) -> bool:
    if test is not None:
        sign, bound = test
        return {
            ">=": row.context >= bound,
            "<=": row.context <= bound,
            ">": row.context > bound,
            "<": row.context < bound,
            "=": row.context == bound,
        }[sign]
    if word == "fits":
        return row.verdict in (Verdict.FIT, Verdict.TIGHT)
    name, colon, value = word.partition(":")
    if colon and name in ("gpu", "gpus"):
        return str(row.gpus) == value
    exact = {row.series, row.depth, row.status, row.drafter, row.weights.lower(), row.files, row.topology, row.engine}
    return word in exact or word in row.slug or word in row.model or word in catalog.models[row.model].title.lower()
