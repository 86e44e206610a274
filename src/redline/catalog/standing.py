"""How far a tier can be trusted by what was measured of it, and what the next step up still lacks.

Only evidence that counts is looked at: measured on the pinned engine, unpatched and as shipped. A rule of the catalogue
may state a higher status for reasons of its own; evidence never lowers one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redline.catalog.explain import counts, evidence_of
from redline.catalog.tiers import Status
from redline.catalog.types import Catalog, Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a status needs: numbers of all these metrics, at least `least` each, on so many different rigs."""

    words: str
    metrics: tuple[str, ...]
    least: float = 0.0
    rigs: int = 1


_RATES: Final = ("decode_narrative", "decode_code")
# Whoever has caveats was seen to work once; production was seen by several, at depth, over time, and answers well.
REQUIREMENTS: Final[dict[Status, tuple[Requirement, ...]]] = {
    Status.CAVEATS: (
        Requirement(words="decode rates of prose and code", metrics=_RATES),
        Requirement(words="verify --suite full passed", metrics=("full_share",), least=1.0),
    ),
    Status.PRODUCTION: (
        Requirement(words="decode rates on two rigs", metrics=_RATES, rigs=2),
        Requirement(words="verify --suite full passed on two rigs", metrics=("full_share",), least=1.0, rigs=2),
        Requirement(words="verify --suite stress passed", metrics=("stress_share",), least=1.0),
        Requirement(words="soak passed", metrics=("soak_share",), least=1.0),
        Requirement(words="quality measured", metrics=("quality_pass1",)),
    ),
}
# A status that the rules state, and the ones that evidence may lift it to.
LIFTED: Final[dict[str, frozenset[str]]] = {
    Status.PROJECTED.value: frozenset({Status.CAVEATS.value, Status.PRODUCTION.value}),
    Status.EXPERIMENTAL.value: frozenset({Status.CAVEATS.value, Status.PRODUCTION.value}),
    Status.CAVEATS.value: frozenset({Status.PRODUCTION.value}),
}
_ORDER: Final = (Status.PRODUCTION, Status.CAVEATS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What evidence has earned (None: nothing yet), on which numbers, and what the status above it still needs."""

    earned: Status | None
    rests_on: tuple[str, ...]
    next_status: Status | None
    missing: tuple[str, ...]


def standing(catalog: Catalog, slug: str) -> Standing:
    """Return a tier's standing by evidence alone."""
    rows = [row for row in evidence_of(catalog, slug) if counts(catalog, row)]
    lacks = {status: [need.words for need in REQUIREMENTS[status] if not _met(need, rows)] for status in _ORDER}
    earned = next((status for status in _ORDER if not lacks[status] and not lacks[Status.CAVEATS]), None)
    above = {None: Status.CAVEATS, Status.CAVEATS: Status.PRODUCTION}.get(earned)
    used = {metric for need in REQUIREMENTS[earned] for metric in need.metrics} if earned else set()
    return Standing(
        earned=earned,
        rests_on=tuple(row.id for row in rows if row.metric in used),
        next_status=above,
        missing=tuple(lacks[above]) if above else (),
    )


def _met(need: Requirement, rows: Sequence[Evidence]) -> bool:
    for metric in need.metrics:
        good = {row.rig for row in rows if row.metric == metric and row.value >= need.least}
        if len(good) < need.rigs:
            return False
    return True
