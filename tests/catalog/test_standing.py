"""Statuses follow from evidence that counts, step by step, and never from any other."""

from dataclasses import replace

import pytest

from redline.catalog.evidence import Evidence, EvidenceKind
from redline.catalog.resolve import resolve
from redline.catalog.standing import standing
from redline.catalog.tiers import Status
from redline.catalog.types import Catalog
from redline.settings import Layers

SLUG = "vllm/qwen38-27b-dual-ultrafast"


def row(catalog: Catalog, metric: str, rig: str = "2x RTX 3090", value: float = 1.0, **fields: object) -> Evidence:
    values: dict[str, object] = {
        "id": f"test-{metric}-{rig}/1",
        "slug": SLUG,
        "metric": metric,
        "value": value,
        "unit": "",
        "kind": EvidenceKind.MEASURED,
        "rig": rig,
        "engine": "vllm",
        "engine_version": catalog.engines["vllm"].pin,
        "date": "2026-11-30",
        "source": "test",
    }
    return Evidence(**(values | fields))  # type: ignore[arg-type]


def with_rows(catalog: Catalog, *rows: Evidence) -> Catalog:
    return replace(catalog, evidence={**catalog.evidence, **{one.id: one for one in rows}})


CAVEATS = ("decode_narrative", "decode_code", "full_share")
PRODUCTION = (*CAVEATS, "stress_share", "soak_share", "quality_pass1")


def test_without_evidence_that_counts_nothing_is_earned(catalog: Catalog) -> None:
    found = standing(catalog, SLUG)
    assert found.earned is None
    assert found.next_status is Status.CAVEATS
    assert len(found.missing) == 2


def test_one_rig_earns_caveats_and_two_earn_production(catalog: Catalog) -> None:
    one = with_rows(catalog, *(row(catalog, metric) for metric in PRODUCTION))
    assert standing(one, SLUG).earned is Status.CAVEATS
    assert standing(one, SLUG).missing == (
        "decode rates on two rigs",
        "verify --suite full passed on two rigs",
    )
    two = with_rows(one, *(row(catalog, metric, rig="2x RTX 4090") for metric in CAVEATS))
    assert standing(two, SLUG).earned is Status.PRODUCTION
    tier = resolve(two, SLUG, Layers())
    assert tier.status.value == "production"
    assert tier.status.origin.startswith("evidence:test-")


@pytest.mark.parametrize("metric", CAVEATS)
def test_every_requirement_is_needed(catalog: Catalog, metric: str) -> None:
    rows = [row(catalog, name) for name in CAVEATS if name != metric]
    assert standing(with_rows(catalog, *rows), SLUG).earned is None


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": EvidenceKind.REPORTED},
        {"kind": EvidenceKind.PROJECTED},
        {"engine_version": "0.27.1"},
        {"patches": ("x",)},
        {"setup": "another context"},
        {"value": 0.5},
    ],
)
def test_what_does_not_count_earns_nothing(catalog: Catalog, fields: dict[str, object]) -> None:
    rows = [row(catalog, name, **(fields if name == "full_share" else {})) for name in CAVEATS]  # type: ignore[arg-type]
    assert standing(with_rows(catalog, *rows), SLUG).earned is None


def test_a_tier_that_is_worked_at_is_not_lifted(catalog: Catalog) -> None:
    slug = "vllm/qwen38-27b-dual-dflash15-fast"
    rows = [replace(row(catalog, name), slug=slug) for name in CAVEATS]
    assert resolve(with_rows(catalog, *rows), slug, Layers()).status.value == "incubating"
