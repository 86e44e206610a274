"""A slug and the user's overrides into a `ResolvedTier`, by the catalogue's rules.

Rules run in the order of their files. An override takes effect where the first rule would have set its field, so
that later rules see it. Nothing here is a table of values: values are data, this is how they combine.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from redline.catalog.fields import SAMPLER_FIELDS, TIER_FIELDS, FieldSpec, ResolvedTier
from redline.catalog.load import KEY_FIELDS
from redline.catalog.types import Catalog, Reference, Rule, Sampler, TierKey
from redline.errors import FaultError, UsageError
from redline.settings import Layers, Sourced, parse_bool, parse_float, parse_int


def find_tier(catalog: Catalog, slug: str) -> TierKey:
    """Return the tier a slug names; the engine part may be left out where that is not ambiguous.

    Raises:
        UsageError: no such slug (nearest names given), or several.
    """
    if slug in catalog.tiers:
        return catalog.tiers[slug]
    by_tail = [key for key in catalog.tiers.values() if key.slug.partition("/")[2] == slug]
    if len(by_tail) == 1:
        return by_tail[0]
    names = [*catalog.tiers, *(key.partition("/")[2] for key in catalog.tiers)]
    near = list(dict.fromkeys(difflib.get_close_matches(slug, names, n=3, cutoff=0.5)))
    hint = f"Nearest: {', '.join(near)}." if near else "No name is near it."
    raise UsageError(f"There is no tier {slug!r}.", next_step=f"{hint} `redline tiers` lists them all.")


def resolve(catalog: Catalog, slug: str, layers: Layers) -> ResolvedTier:
    """Settle every field of a tier.

    Raises:
        UsageError: unknown slug, or an override that cannot be used.
        FaultError: the catalogue leaves a field open, or a rule changes one without a reason.
    """
    key = find_tier(catalog, slug)
    values: dict[str, Sourced[Any]] = {}
    for rule in catalog.rules:
        if not _matches(rule, key, values):
            continue
        for name, stated in rule.set.items():
            _set_field(catalog, key, values, rule, name, stated, layers)
    _apply_sampler(catalog, key, values, layers)
    missing = [name for name in TIER_FIELDS if name not in values]
    if missing:
        raise FaultError(f"No rule sets {', '.join(missing)} of {key.slug}.", next_step="Add a rule to the catalogue.")
    return ResolvedTier(key=key, **values)


def explain_origin(catalog: Catalog, origin: str) -> str:
    """Return the sentence behind an origin: for a rule its reason and source, for other origins nothing more."""
    kind, _, rest = origin.partition(":")
    if kind == "rule":
        rule = next((rule for rule in catalog.rules if rule.id == rest), None)
        return "; ".join(part for part in ((rule.reason, rule.source) if rule else ()) if part)
    if kind == "sampler":
        model_id, _, row = rest.partition("/")
        model = catalog.models.get(model_id)
        return next((sampler.source for sampler in model.samplers if sampler.id == row), "") if model else ""
    return {
        "cli": "given on the command line",
        "env": "set in the environment",
        ".env": "set in .env of this folder",
        "config": "set in the config file",
    }.get(kind, "")


def _matches(rule: Rule, key: TierKey, values: Mapping[str, Sourced[Any]]) -> bool:
    for name, wanted in rule.when.items():
        if name in KEY_FIELDS:
            actual = str(getattr(key, name))
        elif name in values:
            actual = values[name].value
        else:
            return False
        if actual not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            return False
    return True


def _set_field(
    catalog: Catalog,
    key: TierKey,
    values: dict[str, Sourced[Any]],
    rule: Rule,
    name: str,
    stated: object,
    layers: Layers,
) -> None:
    override = _override(TIER_FIELDS[name], layers)
    if override is not None:
        values[name] = override
        return
    if name in values and not rule.reason:
        raise FaultError(
            f"Rule {rule.id} changes {name} of {key.slug} (set by {values[name].origin}) and gives no reason.",
            next_step="Add a reason to the rule, or narrow its `when`.",
        )
    value = _look_up(catalog, key, values, rule, stated.ref) if isinstance(stated, Reference) else stated
    values[name] = Sourced(value, f"rule:{rule.id}")


def _look_up(catalog: Catalog, key: TierKey, values: Mapping[str, Sourced[Any]], rule: Rule, ref: str) -> Any:
    kind, _, path = ref.partition(".")
    roots: dict[str, Any] = {
        "model": catalog.models[key.model],
        "engine": catalog.engines[key.engine],
        "topology": catalog.topologies[key.topology],
        "artifact": catalog.artifacts.get(values["artifact"].value) if "artifact" in values else None,
        "drafter": catalog.drafters.get(values["drafter"].value) if "drafter" in values else None,
    }
    found = roots.get(kind)
    for part in path.split("."):
        if found is None or not hasattr(found, part):
            raise FaultError(
                f"Rule {rule.id} refers to {ref}, which {key.slug} has not.", next_step="Correct the rule."
            )
        found = getattr(found, part)
    return found


def _override(spec: FieldSpec, layers: Layers) -> Sourced[Any] | None:
    raw = layers.get(spec.knob) if spec.knob else None
    if raw is None or spec.knob is None:
        return None
    if spec.type == "bool":
        return parse_bool(raw, spec.knob)
    if spec.type == "int":
        return parse_int(raw, spec.knob, minimum=int(spec.minimum), maximum=int(spec.maximum))
    if spec.type == "float":
        return parse_float(raw, spec.knob, minimum=spec.minimum, maximum=spec.maximum)
    return raw


def _apply_sampler(catalog: Catalog, key: TierKey, values: dict[str, Sourced[Any]], layers: Layers) -> None:
    """Take the sampler row of the mode; a value given by the user still wins, field by field."""
    thinking = bool(values["enable_thinking"].value) if "enable_thinking" in values else False
    row = _sampler_row(catalog.models[key.model].samplers, thinking=thinking)
    if row is None:
        return
    for name in SAMPLER_FIELDS:
        override = _override(TIER_FIELDS[name], layers)
        values[name] = override or Sourced(getattr(row, name), f"sampler:{key.model}/{row.id}")


def _sampler_row(rows: tuple[Sampler, ...], *, thinking: bool) -> Sampler | None:
    return next((row for row in rows if row.thinking == thinking), rows[0] if rows else None)
