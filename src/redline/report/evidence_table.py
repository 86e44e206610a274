"""What is known of a model's tiers, as pages: every recorded number beside its rig, engine, date and source.

Numbers that were made together stand in one line. A number counts towards a tier's status only when it was measured on
the pinned engine, unpatched and as the tier is shipped; the page says so line by line.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from redline.catalog.explain import counts
from redline.catalog.types import Catalog, Evidence
from redline.report.row import cell
from redline.report.words import rate, short_tokens

_HEADINGS: Final = ("Tier", "prose / code tok/s", "Context", "Other", "Rig", "Engine", "How", "Date", "Source")
_SHOWN_APART: Final = frozenset({"decode_narrative", "decode_code", "context"})
_NAMES: Final = {"ttft": "first token", "ttft_code": "first token, code", "boot": "boot", "vram_peak": "peak memory"}


def benchmark_page(catalog: Catalog, model_id: str) -> str:
    """Return the page of a model's numbers: one line a tier and set of circumstances, in the catalogue's order."""
    groups = _together(catalog, model_id)
    lines = [_HEADINGS, ("---",) * len(_HEADINGS), *(_line(catalog, rows) for rows in groups)]
    table = "".join(f"| {' | '.join(cell(text) for text in line)} |\n" for line in lines)
    counted = sum(1 for rows in groups if counts(catalog, rows[0]))
    return (
        f"# Numbers of {cell(catalog.models[model_id].title)}\n\n"
        "Made from the catalogue's evidence by `scripts/write_benchmarks.py`; do not edit.\n\n"
        f"{len(groups)} sets of numbers, of which {counted} count towards a status here: made on the pinned engine, "
        "unpatched and as shipped. All others say what was seen elsewhere.\n\n"
        f"{table if groups else 'Nobody is known to have measured it.' + chr(10)}"
    )


def changelog_page(catalog: Catalog, model_id: str) -> str:
    """Return what became known of a model, latest first; what bears no date comes last."""
    groups = sorted(_together(catalog, model_id), key=lambda rows: _day(rows[0]), reverse=True)
    lines = [f"# What became known of {cell(catalog.models[model_id].title)}\n"]
    for day, dated in groupby(groups, key=lambda rows: _day(rows[0])):
        lines.append(f"\n## {cell(day or 'undated')}\n\n")
        lines += [f"- {cell(rows[0].slug)}: {cell(_sentence(catalog, rows))}\n" for rows in dated]
    return "".join(lines)


def _together(catalog: Catalog, model_id: str) -> list[list[Evidence]]:
    """Return the numbers of a model's tiers, those of one tier made under one set of circumstances together."""
    order = {slug: place for place, slug in enumerate(catalog.tiers)}
    groups: dict[tuple[object, ...], list[Evidence]] = {}
    for row in catalog.evidence.values():
        if row.slug in order and catalog.tiers[row.slug].model == model_id:
            key = (row.slug, row.rig, row.engine_version, row.kind, row.date, row.source, row.patches, row.setup)
            groups.setdefault(key, []).append(row)
    return sorted(groups.values(), key=lambda rows: order[rows[0].slug])


def _day(row: Evidence) -> str:
    return row.date if row.date[:1].isdigit() else ""


def _line(catalog: Catalog, rows: Sequence[Evidence]) -> tuple[str, ...]:
    first = rows[0]
    contexts = [row.value for row in rows if row.metric == "context"]
    return (
        first.slug,
        _pair(rows),
        short_tokens(round(max(contexts))) if contexts else "—",
        ", ".join(_words(row) for row in rows if row.metric not in _SHOWN_APART) or "—",
        first.rig,
        _engine(first),
        _how(catalog, first),
        first.date,
        first.source,
    )


def _pair(rows: Sequence[Evidence]) -> str:
    found = [next((row for row in rows if row.metric == name), None) for name in ("decode_narrative", "decode_code")]
    if found == [None, None]:
        return "—"
    return " / ".join("—" if row is None else _value(row) for row in found)


def _value(row: Evidence) -> str:
    interval = f" ({rate(row.low)} to {rate(row.high)})" if row.low is not None and row.high is not None else ""
    return f"{rate(row.value)}{interval}"


def _words(row: Evidence) -> str:
    name = _NAMES.get(row.metric, row.metric.replace("_", " "))
    number = f"{row.value:,.0f}" if row.value >= 100 or row.value == int(row.value) else f"{row.value:g}"
    return f"{name} {number} {row.unit}".rstrip()


def _engine(row: Evidence) -> str:
    patches = f" with {', '.join(row.patches)}" if row.patches else ""
    return f"{row.engine} {row.engine_version}{patches}"


def _how(catalog: Catalog, row: Evidence) -> str:
    runs = f", n={row.n}" if row.n is not None else ""
    setup = f"; {row.setup}" if row.setup else ""
    return f"{row.kind.value}{runs}{', counts' if counts(catalog, row) else ''}{setup}"


def _sentence(catalog: Catalog, rows: Sequence[Evidence]) -> str:
    numbers = ", ".join(f"{_words(row)}" for row in rows)
    first = rows[0]
    return f"{numbers} ({_how(catalog, first)}; {first.rig}; {_engine(first)}; {first.source})"
