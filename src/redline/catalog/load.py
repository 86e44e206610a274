"""The packaged YAML and the user's own into one checked catalogue; everything is checked before anything is used.

All errors are reported at once, each with file and line. A user's record replaces the packaged one of the same id, a
user's rule of the same id stands where the packaged one stood, and further rules run after the packaged ones.
"""

from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from redline.catalog.cache import make_key, read_cached, write_cached
from redline.catalog.types import Catalog, CatalogFile, Ladder, Rule, TierKey
from redline.errors import UsageError

PACKAGED: Final = Path(__file__).parent / "data"
_LISTS: Final = tuple(field.name for field in fields(CatalogFile))
_TABLES: Final = tuple(name for name in _LISTS if name not in ("ladders", "rules", "evidence_sets"))


def load_catalog(user_dir: Path | None = None) -> Catalog:
    """Return the checked catalogue.

    Raises:
        UsageError: any file has a problem; `details` lists all of them, each with file and line.
    """
    packaged, own = sorted(PACKAGED.rglob("*.yaml")), sorted(user_dir.glob("*.yaml")) if user_dir else []
    key = make_key((*packaged, *own))
    return _load(tuple(packaged), tuple(own), key)


@lru_cache(maxsize=4)
def _load(packaged: tuple[Path, ...], own: tuple[Path, ...], key: tuple[object, ...]) -> Catalog:
    catalog = read_cached(key)
    if catalog is None:
        catalog = read_catalog(packaged, own)
        write_cached(key, catalog)
    return catalog


def read_catalog(packaged: tuple[Path, ...], own: tuple[Path, ...]) -> Catalog:
    """Read and check these files, whatever was kept of them.

    Raises:
        UsageError: as `load_catalog`.
    """
    from redline.catalog.checks import check_catalog
    from redline.catalog.sources import Problems, read_source

    problems = Problems()
    paths = [*((path, True) for path in packaged), *((path, False) for path in own)]
    sources = [found for path, mine in paths if (found := read_source(path, mine, problems))]
    places: dict[tuple[str, str], str] = {}
    tables = {section: _merge(section, sources, places, problems) for section in _TABLES}
    _add_sets(tables["evidence"], sources, places, problems)
    catalog = Catalog(
        **tables,
        rules=_merge_rules(sources, places, problems),
        tiers=_tier_keys(sources, tables, places, problems),
    )
    # With a file missing, everything that another one takes from it would look wrong too.
    if len(sources) == len(paths):
        check_catalog(catalog, places, problems)
    if problems.lines:
        raise UsageError(
            f"The catalogue has {len(problems.lines)} problem{'s' if len(problems.lines) > 1 else ''}.",
            next_step="Correct the lines named above; files under your own catalog folder can simply be removed.",
            details=tuple(problems.lines),
        )
    return catalog


def _merge(section: str, sources: list[Any], places: dict[tuple[str, str], str], problems: Any) -> dict[str, Any]:
    table: dict[str, Any] = {}
    owner: dict[str, Any] = {}
    for source in sources:
        for index, record in enumerate(getattr(source.content, section)):
            where = source.where(section, index)
            if record.id in table and owner[record.id].packaged == source.packaged:
                problems.add(where, f"{section} id {record.id!r} is given twice, first at {places[section, record.id]}")
                continue
            table[record.id], owner[record.id], places[section, record.id] = record, source, where
    return table


def _add_sets(table: dict[str, Any], sources: list[Any], places: dict[tuple[str, str], str], problems: Any) -> None:
    for source in sources:
        for index, group in enumerate(source.content.evidence_sets):
            for number, row in enumerate(group.rows()):
                where = source.where("evidence_sets", index, "numbers", number)
                if row.id in table:
                    problems.add(where, f"evidence set id {group.id!r} is given twice")
                    break
                table[row.id], places["evidence", row.id] = row, where


def _merge_rules(sources: list[Any], places: dict[tuple[str, str], str], problems: Any) -> tuple[Rule, ...]:
    rules: dict[str, Rule] = {}
    owner: dict[str, Any] = {}
    for source in sources:
        for index, rule in enumerate(source.content.rules):
            where = source.where("rules", index)
            if rule.id in rules and owner[rule.id].packaged == source.packaged:
                problems.add(where, f"rule id {rule.id!r} is given twice, first at {places['rules', rule.id]}")
                continue
            rules[rule.id], owner[rule.id], places["rules", rule.id] = rule, source, where
    return tuple(rules.values())


def _tier_keys(
    sources: list[Any],
    tables: dict[str, dict[str, Any]],
    places: dict[tuple[str, str], str],
    problems: Any,
) -> dict[str, TierKey]:
    keys: dict[str, TierKey] = {}
    owner: dict[str, Any] = {}
    for source in sources:
        for index, ladder in enumerate(source.content.ladders):
            where = source.where("ladders", index)
            unknown = _unknown_in(ladder, tables)
            for text in unknown:
                problems.add(where, text)
            if unknown:
                continue
            prefix = tables["models"][ladder.model].slug
            for row, entry in enumerate(ladder.tiers):
                where = source.where("ladders", index, "tiers", row)
                for topology in entry.topologies or ladder.topologies:
                    slug = f"{ladder.engine}/{prefix}-{topology}-{entry.name}"
                    if slug in keys and owner[slug].packaged == source.packaged:
                        problems.add(where, f"slug {slug} is given twice, first at {places['tiers', slug]}")
                    keys[slug] = TierKey(
                        slug, ladder.engine, ladder.model, topology, entry.name, entry.series, entry.depth
                    )
                    owner[slug], places["tiers", slug] = source, where
    return keys


def _unknown_in(ladder: Ladder, tables: dict[str, dict[str, Any]]) -> list[str]:
    topologies = [*ladder.topologies, *(name for entry in ladder.tiers for name in entry.topologies)]
    named = (("models", [ladder.model]), ("engines", [ladder.engine]), ("topologies", topologies))
    singular = {"models": "model", "engines": "engine", "topologies": "topology"}
    return [
        f"ladder of {ladder.model}: unknown {singular[section]} {name!r}"
        for section, names in named
        for name in dict.fromkeys(names)
        if name not in tables[section]
    ]
