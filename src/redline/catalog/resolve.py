"""A slug and the user's overrides into a `ResolvedTier`, by the catalogue's rules.

Rules run in the order of their files. An override takes effect where the first rule would have set its field, so
that later rules see it. Nothing here is a table of values: values are data, this is how they combine.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redline.catalog.fields import ABSENT, KEY_FIELDS, SAMPLER_FIELDS, TIER_FIELDS, ResolvedTier
from redline.catalog.knobs import read_override
from redline.catalog.types import Catalog, Choice, Reference, Rule, Sampler, TierKey
from redline.errors import FaultError, UsageError
from redline.settings import Layers, Sourced

Values = dict[str, Sourced[Any]]
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Settled:
    """The values that rules gave a tier, the ids of the rules that gave one, and what is wrong with them."""

    values: Mapping[str, Sourced[Any]]
    applied: frozenset[str]
    problems: tuple[tuple[str, str], ...]
    """Pairs of a rule's id (empty for the tier as a whole) and a sentence."""


def find_tier(catalog: Catalog, slug: str) -> TierKey:
    """Return the tier a slug or an alias names; the engine part may be left out where that is not ambiguous.

    Raises:
        UsageError: no such slug (nearest names given), or several.
    """
    while slug in catalog.aliases:
        slug = catalog.aliases[slug].target
    if slug in catalog.tiers:
        return catalog.tiers[slug]
    by_tail = [key for key in catalog.tiers.values() if key.slug.partition("/")[2] == slug]
    if len(by_tail) == 1:
        return by_tail[0]
    names = [*catalog.tiers, *(key.partition("/")[2] for key in catalog.tiers), *catalog.aliases]
    near = list(dict.fromkeys(difflib.get_close_matches(slug, names, n=3, cutoff=0.5)))
    hint = f"Nearest: {', '.join(near)}." if near else "No name is near it."
    raise UsageError(f"There is no tier {slug!r}.", next_step=f"{hint} `redline tiers --all` lists them all.")


def resolve(catalog: Catalog, slug: str, layers: Layers) -> ResolvedTier:
    """Settle every field of a tier.

    Raises:
        UsageError: unknown slug, or an override that cannot be used.
        FaultError: the catalogue leaves a field open, or a rule changes one without a reason.
    """
    key = find_tier(catalog, slug)
    settled = settle(catalog, key, layers)
    if settled.problems:
        raise FaultError(
            f"The catalogue does not settle {key.slug}: {settled.problems[0][1]}.",
            next_step="Correct the rules of the catalogue.",
            details=tuple(text for _, text in settled.problems),
        )
    return ResolvedTier(key=key, **_lifted(catalog, key, settled.values))


def _lifted(catalog: Catalog, key: TierKey, values: Mapping[str, Sourced[Any]]) -> dict[str, Sourced[Any]]:
    """Return the values with the status that evidence has earned, where that is more than the rules state.

    A tier that somebody still works at (incubating) is not lifted.
    """
    from redline.catalog.standing import LIFTED, standing  # standing reads evidence through this module

    stated = values["status"].value
    if stated not in LIFTED:
        return dict(values)
    found = standing(catalog, key.slug)
    if found.earned is None or found.earned.value not in LIFTED[stated]:
        return dict(values)
    origin = f"evidence:{found.rests_on[0].rpartition('/')[0]}"
    lacks = f"for {found.next_status.value} it lacks: {'; '.join(found.missing)}" if found.next_status else None
    return {**values, "status": Sourced(found.earned.value, origin), "status_note": Sourced(lacks, origin)}


def settle(catalog: Catalog, key: TierKey, layers: Layers) -> Settled:
    """Run the rules for one tier and return what came of them, with everything that is wrong.

    Raises:
        UsageError: an override that cannot be used.
    """
    values: Values = {}
    applied: set[str] = set()
    problems: list[tuple[str, str]] = []
    for rule in catalog.rules:
        if not matches(catalog, key, values, rule.when):
            continue
        for name in rule.absent:
            values[name] = Sourced(None, f"{ABSENT}{rule.id}")
            applied.add(rule.id)
        for name, stated in rule.set.items():
            value = _stated_value(catalog, key, values, stated)
            if value is _MISSING:
                continue
            applied.add(rule.id)
            problem = _set_field(values, rule, name, value, layers)
            if problem:
                problems.append((rule.id, problem))
    _apply_sampler(catalog, key, values, layers)
    missing = [name for name in TIER_FIELDS if name not in values]
    if missing:
        problems.append(("", f"no rule sets {', '.join(missing)} of {key.slug}"))
    return Settled(values, frozenset(applied), tuple(problems))


def matches(catalog: Catalog, key: TierKey, values: Mapping[str, Sourced[Any]], when: Mapping[str, Any]) -> bool:
    """Whether a tier, as far as it is settled, is what a `when` asks for; what is not settled matches nothing."""
    for name, wanted in when.items():
        actual = look_up(catalog, key, values, name)
        if actual is _MISSING or actual not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            return False
    return True


def look_up(catalog: Catalog, key: TierKey, values: Mapping[str, Sourced[Any]], name: str) -> Any:
    """Return a word of the slug, a settled field, or the fact at a dotted path such as `drafter.checkpoint.depth`."""
    if name in KEY_FIELDS:
        return str(getattr(key, name))
    if "." not in name:
        return values[name].value if name in values else _MISSING
    root, *path = name.split(".")
    version = values["engine_version"].value if "engine_version" in values else ""
    roots: dict[str, Any] = {
        "model": catalog.models[key.model],
        "engine": catalog.engines[key.engine],
        "version": catalog.engines[key.engine].version(version),
        "topology": catalog.topologies[key.topology],
        "artifact": catalog.artifacts.get(values["artifact"].value) if "artifact" in values else None,
        "drafter": catalog.drafters.get(values["drafter"].value) if "drafter" in values else None,
    }
    found = roots.get(root, _MISSING)
    for part in path:
        found = _step(found, part)
        if found is _MISSING:
            return _MISSING
    return found


def _step(found: Any, part: str) -> Any:
    if isinstance(found, Mapping):
        return found.get(part, _MISSING)
    if found is None or not hasattr(found, part):
        return _MISSING
    return getattr(found, part)


def _stated_value(catalog: Catalog, key: TierKey, values: Values, stated: Any) -> Any:
    if isinstance(stated, Reference):
        return look_up(catalog, key, values, stated.ref)
    if isinstance(stated, Choice):
        actual = look_up(catalog, key, values, stated.by)
        return stated.of.get(str(actual), _MISSING)
    return stated


def _set_field(values: Values, rule: Rule, name: str, value: Any, layers: Layers) -> str | None:
    spec = TIER_FIELDS[name]
    before = values.get(name)
    if before is not None and not rule.reason:
        return f"rule {rule.id} changes {name}, set by {before.origin}, and gives no reason"
    problem = spec.problem(value)
    if problem:
        return f"rule {rule.id}: {name} {problem}"
    values[name] = read_override(spec, layers) or Sourced(value, f"rule:{rule.id}")
    return None


def _apply_sampler(catalog: Catalog, key: TierKey, values: Values, layers: Layers) -> None:
    """Take the sampler row of the mode; a value given by the user still wins, field by field."""
    thinking = bool(values["enable_thinking"].value) if "enable_thinking" in values else False
    row = sampler_row(catalog.models[key.model].samplers, thinking=thinking)
    if row is None:
        return
    for name in SAMPLER_FIELDS:
        override = read_override(TIER_FIELDS[name], layers)
        values[name] = override or Sourced(getattr(row, name), f"sampler:{key.model}/{row.id}")


def sampler_row(rows: tuple[Sampler, ...], *, thinking: bool) -> Sampler | None:
    """Return the row of a mode, the first one where a model has no row of it, or None where it has none at all."""
    return next((row for row in rows if row.thinking == thinking), rows[0] if rows else None)
