"""Where a value came from, in words; and what is known of a tier besides its values: faults and numbers."""

from dataclasses import replace

from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import matches
from redline.catalog.types import Catalog, Evidence, EvidenceKind, Hazard, Model, Offer
from redline.catalog.versions import in_versions

_LAYERS = {
    "cli": "given on the command line",
    "env": "set in the environment",
    ".env": "set in .env of this folder",
    "config": "set in the config file",
}


def explain_origin(catalog: Catalog, origin: str) -> str:
    """Return the sentence behind an origin: for a rule its reason and source, for other origins what is known."""
    kind, _, rest = origin.partition(":")
    if kind in ("rule", "absent"):
        rule = next((rule for rule in catalog.rules if rule.id == rest), None)
        return "; ".join(part for part in ((rule.reason, rule.source) if rule else ()) if part)
    if kind == "sampler":
        model_id, _, row = rest.partition("/")
        model = catalog.models.get(model_id)
        return next((sampler.source for sampler in model.samplers if sampler.id == row), "") if model else ""
    if kind == "evidence":
        found = next((item for item in catalog.evidence.values() if item.id.startswith(f"{rest}/")), None)
        return f"measured on {found.rig}, {found.date}; {found.source}" if found else ""
    return _LAYERS.get(kind, "")


def served_model(catalog: Catalog, tier: ResolvedTier) -> Model:
    """Return a tier's model with what this tier can do: a GGUF without its projector reads no images."""
    model = catalog.models[tier.key.model]
    artifact = catalog.artifacts[tier.artifact.value]
    if artifact.format != "gguf" or tier.projector.value is not None or not model.capabilities.vision.offered:
        return model
    blind = Offer(offered=False, why="this tier carries no vision projector", source=tier.projector.origin)
    return replace(model, capabilities=replace(model.capabilities, vision=blind))


def hazards_of(catalog: Catalog, tier: ResolvedTier) -> tuple[Hazard, ...]:
    """Return the faults that a tier is exposed to as it is settled: engine, version, `when` and context all met."""
    values = {name: getattr(tier, name) for name in tier.__slots__ if name != "key"}
    return tuple(
        hazard
        for hazard in catalog.hazards.values()
        if hazard.engine == tier.key.engine
        and in_versions(tier.engine_version.value, hazard.versions)
        and matches(catalog, tier.key, values, hazard.when)
        and (hazard.context_above is None or tier.max_model_len.value > hazard.context_above)
    )


def evidence_of(catalog: Catalog, slug: str, metric: str | None = None) -> tuple[Evidence, ...]:
    """Return what was recorded of a tier, of one metric if it is named, as it is ordered in the catalogue."""
    return tuple(
        row for row in catalog.evidence.values() if row.slug == slug and (metric is None or row.metric == metric)
    )


def counts(catalog: Catalog, row: Evidence) -> bool:
    """Whether a number counts towards the tier's status here: measured on the pinned engine, unpatched, as shipped."""
    engine = catalog.engines[row.engine]
    return row.kind is EvidenceKind.MEASURED and row.engine_version == engine.pin and not row.patches and not row.setup
