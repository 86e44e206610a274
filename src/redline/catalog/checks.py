"""What must hold between records: every name is known, every rule matches something, every tier is settled.

Problems are collected, never raised, so that a user sees all of them at once.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from redline.catalog.evidence import METRICS
from redline.catalog.fields import KEY_FIELDS, TIER_FIELDS
from redline.catalog.memory_checks import check_memory
from redline.catalog.resolve import settle
from redline.catalog.sources import Problems
from redline.catalog.types import Catalog, Choice, Derived, Reference, Rule
from redline.catalog.versions import parse_versions
from redline.errors import UsageError
from redline.settings import Layers

Places = Mapping[tuple[str, str], str]
"""Where each record stands: (section, id) to `file:line`."""

_DATE: Final = re.compile(r"\d{4}-\d{2}(-\d{2})?$|unknown$")
_ROOTS: Final = ("model", "engine", "version", "topology", "artifact", "drafter")


def check_catalog(catalog: Catalog, places: Places, problems: Problems) -> None:
    """Note everything that does not hold."""
    _check_artifacts(catalog, places, problems)
    _check_drafters(catalog, places, problems)
    _check_models(catalog, places, problems)
    _check_engines(catalog, places, problems)
    _check_hazards(catalog, places, problems)
    _check_evidence(catalog, places, problems)
    check_memory(catalog, places, problems)
    _check_aliases(catalog, places, problems)
    if _check_rules(catalog, places, problems):
        _check_tiers(catalog, places, problems)


def _check_artifacts(catalog: Catalog, places: Places, problems: Problems) -> None:
    for artifact in catalog.artifacts.values():
        where = places["artifacts", artifact.id]
        if artifact.model not in catalog.models:
            problems.add(where, f"artifact {artifact.id}: unknown model {artifact.model!r}")
        others = [*artifact.companions, *([artifact.origin.parent] if isinstance(artifact.origin, Derived) else [])]
        for other in others:
            if other not in catalog.artifacts:
                problems.add(where, f"artifact {artifact.id}: unknown artifact {other!r}")


def _check_drafters(catalog: Catalog, places: Places, problems: Problems) -> None:
    for drafter in catalog.drafters.values():
        where = places["drafters", drafter.id]
        if drafter.artifact and drafter.artifact not in catalog.artifacts:
            problems.add(where, f"drafter {drafter.id}: unknown artifact {drafter.artifact!r}")
        for model in drafter.targets:
            if model not in catalog.models:
                problems.add(where, f"drafter {drafter.id}: unknown model {model!r}")


def _check_models(catalog: Catalog, places: Places, problems: Problems) -> None:
    for model_record in catalog.models.values():
        where = places["models", model_record.id]
        for engine in model_record.parsers:
            if engine not in catalog.engines:
                problems.add(where, f"model {model_record.id}: parsers of unknown engine {engine!r}")
        reasoning = model_record.reasoning
        if reasoning and reasoning.default not in reasoning.efforts:
            problems.add(where, f"model {model_record.id}: default effort {reasoning.default!r} is none of its efforts")


def _check_engines(catalog: Catalog, places: Places, problems: Problems) -> None:
    for engine in catalog.engines.values():
        where = places["engines", engine.id]
        if engine.version(engine.pin) is None:
            problems.add(where, f"engine {engine.id}: pin {engine.pin!r} is none of its versions")
        for version in engine.versions:
            for name, claim in version.capabilities.items():
                if not claim.source.strip():
                    problems.add(where, f"engine {engine.id} {version.version}: capability {name} needs a source")


def _check_hazards(catalog: Catalog, places: Places, problems: Problems) -> None:
    for hazard in catalog.hazards.values():
        where = places["hazards", hazard.id]
        if hazard.engine not in catalog.engines:
            problems.add(where, f"hazard {hazard.id}: unknown engine {hazard.engine!r}")
        if not hazard.versions.strip():
            problems.add(where, f"hazard {hazard.id}: a hazard needs the versions it was seen on, or all")
        else:
            try:
                parse_versions(hazard.versions)
            except ValueError as error:
                problems.add(where, f"hazard {hazard.id}: {error}")
        if not hazard.source.strip():
            problems.add(where, f"hazard {hazard.id}: a hazard needs a source")
        for name in hazard.when:
            _check_name(name, f"hazard {hazard.id}", where, problems)


def _check_evidence(catalog: Catalog, places: Places, problems: Problems) -> None:
    for row in catalog.evidence.values():
        where = places["evidence", row.id]
        if not row.source.strip():
            problems.add(where, f"evidence {row.id}: evidence needs a source")
        if row.slug not in catalog.tiers:
            problems.add(where, f"evidence {row.id}: there is no tier {row.slug!r}")
        if row.engine not in catalog.engines:
            problems.add(where, f"evidence {row.id}: unknown engine {row.engine!r}")
        if not _DATE.match(row.date):
            problems.add(where, f"evidence {row.id}: date {row.date!r} is not written as 2026-08-21, or unknown")
        if row.metric not in METRICS:
            problems.add(where, f"evidence {row.id}: unknown metric {row.metric!r}; known: {', '.join(METRICS)}")
        elif row.unit != METRICS[row.metric]:
            problems.add(where, f"evidence {row.id}: {row.metric} is in {METRICS[row.metric]}, not in {row.unit!r}")


def _check_aliases(catalog: Catalog, places: Places, problems: Problems) -> None:
    for alias in catalog.aliases.values():
        where, seen, name = places["aliases", alias.id], [alias.id], alias.target
        while name in catalog.aliases and name not in seen:
            seen.append(name)
            name = catalog.aliases[name].target
        if name in seen:
            problems.add(where, f"alias {alias.id} leads round in a circle: {' -> '.join([*seen, name])}")
        elif name not in catalog.tiers:
            problems.add(where, f"alias {alias.id} leads to {name!r}, which is no tier")
        if alias.id in catalog.tiers:
            problems.add(where, f"alias {alias.id} is the name of a tier")


def _check_rules(catalog: Catalog, places: Places, problems: Problems) -> bool:
    """Check what rules name. Returns whether all of it is known, so that tiers can be settled at all."""
    before = len(problems.lines)
    for rule in catalog.rules:
        where = places["rules", rule.id]
        if not rule.set and not rule.absent:
            problems.add(where, f"rule {rule.id} sets nothing")
        for name in (*rule.set, *rule.absent):
            if name not in TIER_FIELDS:
                problems.add(where, f"rule {rule.id} sets {name!r}, which is no field of a tier")
        for name in rule.when:
            _check_name(name, f"rule {rule.id}", where, problems)
        for name, stated in rule.set.items():
            _check_stated(catalog, rule, name, stated, where, problems)
    return len(problems.lines) == before


def _check_stated(catalog: Catalog, rule: Rule, name: str, stated: object, where: str, problems: Problems) -> None:
    spec = TIER_FIELDS.get(name)
    if isinstance(stated, Reference):
        if "." not in stated.ref:
            problems.add(where, f"rule {rule.id}: {name}: {stated.ref!r} is no path of a fact, such as model.id")
        else:
            _check_name(stated.ref, f"rule {rule.id}", where, problems)
        return
    values: list[Any] = [stated]
    if isinstance(stated, Choice):
        _check_name(stated.by, f"rule {rule.id}", where, problems)
        values = list(stated.of.values())
        if stated.by in KEY_FIELDS:
            words = {str(getattr(key, stated.by)) for key in catalog.tiers.values()}
            for word in sorted(set(stated.of) - words):
                problems.add(where, f"rule {rule.id}: {name}: no tier has {stated.by} {word!r}")
    for value in values:
        problem = spec.problem(value) if spec else None
        if problem:
            problems.add(where, f"rule {rule.id}: {name} {problem}")


def _check_name(name: str, owner: str, where: str, problems: Problems) -> None:
    known = name.partition(".")[0] in _ROOTS if "." in name else name in KEY_FIELDS or name in TIER_FIELDS
    if not known:
        problems.add(where, f"{owner} asks for {name!r}, which no tier has")


def _check_tiers(catalog: Catalog, places: Places, problems: Problems) -> None:
    applied: set[str] = set()
    ports: dict[int, str] = {}
    for slug, key in catalog.tiers.items():
        where = places["tiers", slug]
        try:
            settled = settle(catalog, key, Layers())
        except UsageError as error:  # pragma: no cover -- only overrides raise it, and there are none here
            problems.add(where, str(error))
            continue
        applied |= settled.applied
        for rule_id, text in settled.problems:
            problems.add(places.get(("rules", rule_id), where), f"{text} ({slug})" if rule_id else text)
        for section, name in (("artifacts", "artifact"), ("artifacts", "projector"), ("drafters", "drafter")):
            value = settled.values[name].value if name in settled.values else None
            if value is not None and value not in getattr(catalog, section):
                problems.add(where, f"{slug}: unknown {name} {value!r}")
        port = settled.values["port"].value if "port" in settled.values else None
        if port is not None and ports.setdefault(port, slug) != slug:
            problems.add(where, f"{slug}: port {port} is the port of {ports[port]} too")
    for rule in catalog.rules:
        if catalog.tiers and rule.id not in applied:
            problems.add(places["rules", rule.id], f"rule {rule.id} matches no tier")
