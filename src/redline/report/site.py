"""The matrix page of a static site: every tier with what is known of it, filters that need neither server nor script.

A filter is a radio button and one style rule a choice (`:has()`), so the page obeys the same policy as a report: it
loads nothing and runs nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from redline.report.html import page_style, template

FACETS: Final = ("engine", "topology", "series", "status", "numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNumber:
    """Published numbers of a tier that were made together; `counts`: towards its status, on the pinned engine."""

    words: str
    made_on: str
    source: str
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteTier:
    """A tier in one row. `report` is the page of the runs behind `own`, relative to this page.

    `name` is the tier's own word in its slug; `pair` the published prose and code rates to show first.
    """

    slug: str
    name: str
    model: str
    engine: str
    topology: str
    series: str
    depth: str
    weights: str
    drafter: str
    context: str
    status: str
    status_note: str
    pair: str = ""
    numbers: tuple[SiteNumber, ...] = ()
    own: str = ""
    report: str | None = None

    def facet(self, name: str) -> str:
        """Return the tier's value in one facet."""
        if name == "numbers":
            return "own" if self.own else "published" if self.numbers else "none"
        return str(getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReport:
    """A report of the site that is about no tier of the catalogue, or about several."""

    title: str
    href: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The whole page."""

    made_at: str
    redline_version: str
    tiers: tuple[SiteTier, ...]
    reports: tuple[SiteReport, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteGrid:
    """The tiers of one engine and topology: series down, depth across; two tiers of one rank stand in one cell."""

    title: str
    depths: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[SiteTier, ...], ...]], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a facet: the id of its button, what it says, how many rows it leaves."""

    id: str
    label: str
    rows: int


def render_site(site: Site) -> str:
    """Return the matrix page as text."""
    facets = {name: _choices(site.tiers, name) for name in FACETS}
    models = list(dict.fromkeys(tier.model for tier in site.tiers))
    page: str = template("site.html.j2").render(
        site=site,
        style=page_style(),
        rules=_rules(facets),
        facets=facets,
        models=models,
        grids={model: _grids([tier for tier in site.tiers if tier.model == model]) for model in models},
        marks={tier.slug: _marks(tier, facets) for tier in site.tiers},
    )
    return page


def page_name(slug: str) -> str:
    """Return the file name of a report, made of letters, digits, dots and dashes only."""
    return re.sub(r"[^a-z0-9.]+", "-", slug.lower()).strip("-.")[:120] + ".html"


def _grids(tiers: Sequence[SiteTier]) -> list[SiteGrid]:
    grids = []
    for engine, topology in dict.fromkeys((tier.engine, tier.topology) for tier in tiers):
        here = [tier for tier in tiers if (tier.engine, tier.topology) == (engine, topology)]
        depths = tuple(dict.fromkeys(tier.depth for tier in here))
        rows = tuple(
            (
                series,
                tuple(tuple(tier for tier in here if (tier.series, tier.depth) == (series, depth)) for depth in depths),
            )
            for series in dict.fromkeys(tier.series for tier in here)
        )
        grids.append(SiteGrid(f"{engine}, {topology}", depths, rows))
    return grids


def _choices(tiers: Sequence[SiteTier], name: str) -> tuple[Choice, ...]:
    values = [tier.facet(name) for tier in tiers]
    return tuple(
        Choice(f"{name}-{number}", value, values.count(value)) for number, value in enumerate(dict.fromkeys(values))
    )


def _marks(tier: SiteTier, facets: dict[str, tuple[Choice, ...]]) -> str:
    """Return the classes that filters hide a row by."""
    found = [choice.id for name in FACETS for choice in facets[name] if choice.label == tier.facet(name)]
    return " ".join(f"is-{mark}" for mark in found)


def _rules(facets: dict[str, tuple[Choice, ...]]) -> Any:
    """Return the style rules; ids are numbers of choices, so that no value of the catalogue reaches them."""
    from markupsafe import Markup

    rules = [
        f"body:has(#{choice.id}:checked) tr.tier:not(.is-{choice.id}) {{ display: none; }}"
        for choices in facets.values()
        for choice in choices
    ]
    return Markup("\n".join(rules))  # noqa: S704 -- made of own names and numbers
