"""The matrix that the rules come to, against the reference setups and against itself."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.settings import Layers

GOLDEN: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "golden" / "qwen38-27b.yaml").read_text())
ROWS: dict[str, list[Any]] = GOLDEN["rows"]


def derive(catalog: Catalog, tier: ResolvedTier) -> dict[str, Any]:
    """A tier in the golden table's words."""
    on_vllm = tier.key.engine == "vllm"
    return {
        "weights": catalog.artifacts[tier.artifact.value].quant,
        "drafter": catalog.drafters[tier.drafter.value].kind.value,
        "spec_n": tier.spec_n.value,
        "kv": tier.kv_cache_dtype.value,
        "backend": (tier.attention_backend.value or "auto") if on_vllm else "none",
        "context": tier.max_model_len.value,
        "gmu": tier.gpu_memory_utilization.value if on_vllm else "none",
        "seqs": tier.max_num_seqs.value,
        "tp": tier.tensor_parallel.value if on_vllm else "none",
        "port": tier.port.value,
        "w4a8": tier.w4a8.value if on_vllm else "none",
        "status": tier.status.value,
    }


def test_golden_table_names_every_tier_of_the_model(catalog: Catalog) -> None:
    derived = {slug for slug, key in catalog.tiers.items() if key.model == "qwen3.8-27b"}
    assert derived == set(ROWS)
    assert len(derived) == 23


@pytest.mark.parametrize("slug", ROWS)
def test_tier_is_the_reference_setup_but_for_stated_differences(catalog: Catalog, slug: str) -> None:
    expected = dict(zip(GOLDEN["columns"], ROWS[slug], strict=True))
    for item in GOLDEN["differs"]:
        if slug in item["slugs"]:
            assert expected[item["column"]] != item["here"], "a difference that is none"
            expected[item["column"]] = item["here"]
    assert derive(catalog, resolve(catalog, slug, Layers())) == expected


def test_every_difference_says_why() -> None:
    assert all(item["why"].strip() and set(item["slugs"]) <= set(ROWS) for item in GOLDEN["differs"])


def test_ports_are_unique(catalog: Catalog) -> None:
    ports = {slug: resolve(catalog, slug, Layers()).port.value for slug in catalog.tiers}
    assert len(set(ports.values())) == len(ports)
    assert ports["vllm/qwen38-27b-dual-dflash15-fast"] == 8115


def test_projected_rows_have_no_number_that_counts(catalog: Catalog) -> None:
    projected = {slug for slug in catalog.tiers if resolve(catalog, slug, Layers()).status.value == "projected"}
    assert projected == {slug for slug in ROWS if "multi4" in slug or "multi8" in slug}


def test_rules_of_the_matrix_are_few_and_exceptions_say_why(catalog: Catalog) -> None:
    rules = [rule for rule in catalog.rules if rule.when.get("model") == "qwen3.8-27b"]
    ordinary = [rule for rule in rules if not rule.reason]
    assert len(ordinary) <= 20
    assert all(len(rule.reason) > 15 for rule in rules if rule.reason)


def test_every_field_says_where_it_comes_from(catalog: Catalog) -> None:
    from redline.catalog.explain import explain_origin
    from redline.catalog.fields import TIER_FIELDS

    for slug in catalog.tiers:
        tier = resolve(catalog, slug, Layers())
        for name in TIER_FIELDS:
            assert explain_origin(catalog, getattr(tier, name).origin), f"{slug} {name}"


def test_second_model_is_data_only(catalog: Catalog) -> None:
    tier = resolve(catalog, "vllm/qwen36-27b-dual-fast", Layers())
    assert (tier.spec_n.value, tier.tensor_parallel.value, tier.served_name.value) == (3, 2, "qwen3.6-27b")
    source = Path(__file__).parents[2] / "src" / "redline"
    mentions = [
        path.name for path in source.rglob("*.py") if "qwen3.6" in path.read_text() or "qwen36" in path.read_text()
    ]
    assert mentions == []
