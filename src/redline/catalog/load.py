"""Reads the packaged YAML and the user's own, and checks everything before anything is used.

All errors are reported at once, each with file and line. A user's record replaces the packaged one of the same id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from redline.catalog.fields import TIER_FIELDS
from redline.catalog.memory import MEMORY_LISTS
from redline.catalog.types import Catalog, CatalogFile, Derived, TierKey
from redline.catalog.yaml_text import Lines, YamlError, parse_yaml
from redline.errors import UsageError
from redline.record.codec import from_json

PACKAGED: Final = Path(__file__).parent / "data"
KEY_FIELDS: Final = ("slug", "engine", "model", "topology", "name", "series", "depth")
_LISTS: Final = tuple(field.name for field in fields(CatalogFile))


@dataclass(frozen=True, slots=True)
class _Source:
    """A file that passed its own checks, with the line of each record."""

    path: Path
    content: CatalogFile
    lines: Lines
    packaged: bool

    def where(self, section: str, index: int) -> str:
        return f"{self.path}:{self.lines.get((section, index), 1)}"


class _Problems:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, where: str, message: str) -> None:
        self.lines.append(f"{where}: {message}")


def load_catalog(user_dir: Path | None = None) -> Catalog:
    """Return the checked catalogue.

    Raises:
        UsageError: any file has a problem; `details` lists all of them, each with file and line.
    """
    stamp = _stamp(user_dir) if user_dir else ()
    return _load_cached(user_dir, stamp)


def _stamp(user_dir: Path) -> tuple[tuple[str, int], ...]:
    return tuple((str(path), path.stat().st_mtime_ns) for path in sorted(user_dir.glob("*.yaml")))


@lru_cache(maxsize=4)
def _load_cached(user_dir: Path | None, _stamp: object) -> Catalog:
    problems = _Problems()
    paths = [(path, True) for path in sorted(PACKAGED.rglob("*.yaml"))]
    paths += [(path, False) for path in sorted(user_dir.glob("*.yaml"))] if user_dir else []
    sources = [found for path, packaged in paths if (found := _read(path, packaged, problems))]
    tables = {section: _merge(section, sources, problems) for section in _LISTS if section not in ("ladders", "rules")}
    catalog = _assemble(tables, sources, problems)
    if problems.lines:
        raise UsageError(
            f"The catalogue has {len(problems.lines)} problem(s).",
            next_step="Correct the lines named above; files under your own catalog folder can simply be removed.",
            details=tuple(problems.lines),
        )
    return catalog


def _read(path: Path, packaged: bool, problems: _Problems) -> _Source | None:  # noqa: FBT001 -- private, one caller
    lines: Lines = {}
    try:
        data, lines = parse_yaml(path.read_text(encoding="utf-8"))
        return _Source(path, from_json(CatalogFile, data), lines, packaged)
    except YamlError as error:
        problems.add(f"{path}:{error.line}", str(error))
    except ValidationError as error:
        for item in error.errors():
            problems.add(f"{path}:{_nearest_line(item['loc'], lines)}", f"{_dotted(item['loc'])}: {item['msg']}")
    except (OSError, UnicodeDecodeError, TypeError) as error:
        problems.add(f"{path}:1", f"cannot be read: {error}")
    return None


def _nearest_line(location: tuple[str | int, ...], lines: Lines) -> int:
    for end in range(len(location), -1, -1):
        if location[:end] in lines:
            return lines[location[:end]]
    return 1


def _dotted(location: Iterable[str | int]) -> str:
    return ".".join(str(part) for part in location)


def _merge(section: str, sources: list[_Source], problems: _Problems) -> dict[str, Any]:
    table: dict[str, Any] = {}
    owner: dict[str, _Source] = {}
    for source in sources:
        for index, record in enumerate(getattr(source.content, section)):
            if record.id in table and owner[record.id].packaged == source.packaged:
                problems.add(source.where(section, index), f"{section} id {record.id!r} is given twice")
            table[record.id], owner[record.id] = record, source
    return table


def _assemble(tables: dict[str, dict[str, Any]], sources: list[_Source], problems: _Problems) -> Catalog:
    known = {name: frozenset(table) for name, table in tables.items()}
    _check_references(tables, problems)
    rules = [(rule, source.where("rules", i)) for source in sources for i, rule in enumerate(source.content.rules)]
    seen: set[str] = set()
    for rule, where in rules:
        if rule.id in seen:
            problems.add(where, f"rule id {rule.id!r} is given twice")
        seen.add(rule.id)
        for name in rule.set:
            if name not in TIER_FIELDS:
                problems.add(where, f"rule {rule.id} sets {name!r}, which is no field of a tier")
        for name in rule.when:
            if name not in TIER_FIELDS and name not in KEY_FIELDS:
                problems.add(where, f"rule {rule.id} asks for {name!r}, which no tier has")
    tiers = _tier_keys(sources, tables, known, problems)
    for rule, where in rules:
        if tiers and not any(_may_match(rule.when, key) for key in tiers.values()):
            problems.add(where, f"rule {rule.id} matches no tier")
    return Catalog(
        models=tables["models"],
        artifacts=tables["artifacts"],
        drafters=tables["drafters"],
        engines=tables["engines"],
        topologies=tables["topologies"],
        hazards=tables["hazards"],
        evidence=tables["evidence"],
        rules=tuple(rule for rule, _ in rules),
        tiers=tiers,
        **{name: tables[name] for name in MEMORY_LISTS},
    )


def _may_match(when: Mapping[str, Any], key: TierKey) -> bool:
    """Whether the slug's own words allow a rule; fields set by other rules are not known here."""
    return all(
        getattr(key, name) in (wanted if isinstance(wanted, tuple) else (wanted,))
        for name, wanted in when.items()
        if name in KEY_FIELDS
    )


def _check_references(tables: dict[str, dict[str, Any]], problems: _Problems) -> None:
    for artifact in tables["artifacts"].values():
        if artifact.model not in tables["models"]:
            problems.add("artifacts", f"{artifact.id}: unknown model {artifact.model!r}")
        parents = [
            *artifact.companions,
            *([artifact.origin.parent] if isinstance(artifact.origin, Derived) else []),
        ]
        for parent in parents:
            if parent not in tables["artifacts"]:
                problems.add("artifacts", f"{artifact.id}: unknown artifact {parent!r}")
    for drafter in tables["drafters"].values():
        if drafter.artifact and drafter.artifact not in tables["artifacts"]:
            problems.add("drafters", f"{drafter.id}: unknown artifact {drafter.artifact!r}")
    _check_engines_and_rows(tables, problems)


def _check_engines_and_rows(tables: dict[str, dict[str, Any]], problems: _Problems) -> None:
    for engine in tables["engines"].values():
        if engine.pin not in {version.version for version in engine.versions}:
            problems.add("engines", f"{engine.id}: pin {engine.pin!r} is none of its versions")
    for hazard in tables["hazards"].values():
        if hazard.engine not in tables["engines"]:
            problems.add("hazards", f"{hazard.id}: unknown engine {hazard.engine!r}")
        if not hazard.versions.strip():
            problems.add("hazards", f"{hazard.id}: a hazard needs the versions it was seen on")
    for row in tables["evidence"].values():
        if not row.source.strip():
            problems.add("evidence", f"{row.id}: evidence needs a source")


def _tier_keys(
    sources: list[_Source],
    tables: dict[str, dict[str, Any]],
    known: dict[str, frozenset[str]],
    problems: _Problems,
) -> dict[str, TierKey]:
    keys: dict[str, TierKey] = {}
    for source in sources:
        for index, ladder in enumerate(source.content.ladders):
            where = source.where("ladders", index)
            missing = [
                f"unknown {section[:-1]} {name!r}"
                for section, names in (
                    ("models", (ladder.model,)),
                    ("engines", (ladder.engine,)),
                    ("topologies", ladder.topologies),
                )
                for name in names
                if name not in known[section]
            ]
            for text in missing:
                problems.add(where, text)
            if missing:
                continue
            prefix = tables["models"][ladder.model].slug
            for topology in ladder.topologies:
                for tier in ladder.tiers:
                    slug = f"{ladder.engine}/{prefix}-{topology}-{tier.name}"
                    if slug in keys:
                        problems.add(where, f"slug {slug} is given twice")
                    keys[slug] = TierKey(
                        slug, ladder.engine, ladder.model, topology, tier.name, tier.series, tier.depth
                    )
    return keys
