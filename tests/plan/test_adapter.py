"""Tiers of the packaged catalogue as plan inputs: each field arrives, and what is not known stays unknown."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redline.catalog.fields import ResolvedTier
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog, DrafterKind
from redline.plan.adapter import tier_cards, vllm_inputs, weight_format
from redline.plan.cards import rig_of_words
from redline.settings import Layers, Sourced

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
MakeTier = Callable[..., ResolvedTier]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
def tier(catalog: Catalog) -> MakeTier:
    def build(slug: str = ULTRA, **values: Any) -> ResolvedTier:
        found = resolve(catalog, slug, Layers())
        return replace(found, **{name: Sourced(value, "test") for name, value in values.items()})  # type: ignore[arg-type]

    return build


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("tensor_parallel", 4, "tensor_parallel"),
        ("pipeline_parallel", 2, "pipeline_parallel"),
        ("gpu_memory_utilization", 0.77, "gpu_memory_utilization"),
        ("max_model_len", 12345, "max_model_len"),
        ("max_num_seqs", 7, "max_num_seqs"),
        ("batch_tokens", 4096, "batched_tokens"),
        ("kv_cache_dtype", "fp8_e5m2", "kv_cache_dtype"),
        ("attention_backend", "FLASHINFER", "attention_backend"),
        ("gdn_prefill_backend", "triton", "gdn_prefill"),
        ("prefix_caching", False, "prefix_caching"),
        ("engine_version", "0.31.0", "engine_version"),
    ],
)
def test_each_field_arrives(catalog: Catalog, tier: MakeTier, field: str, value: object, name: str) -> None:
    assert getattr(vllm_inputs(catalog, tier(**{field: value})), name) == value


def test_what_a_tier_leaves_open_takes_the_engines_default(catalog: Catalog, tier: MakeTier) -> None:
    inputs = vllm_inputs(catalog, tier(prefix_caching=None, tensor_parallel=None, attention_backend=None))
    assert (inputs.prefix_caching, inputs.tensor_parallel, inputs.attention_backend) == (True, 2, None)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ("--block-size 64", 64),
        ("--foo --block-size=32 --bar", 32),
        (None, None),
        ("--block-size many", None),
        ("--block-size 0", None),
        ("--block-size 99999999999999", None),
    ],
)
def test_the_block_size_of_further_arguments(
    catalog: Catalog, tier: MakeTier, arguments: str | None, size: int | None
) -> None:
    assert vllm_inputs(catalog, tier(engine_args=arguments)).block_size == size


def test_the_block_drafter_comes_with_its_layers_and_codebooks(catalog: Catalog, tier: MakeTier) -> None:
    drafter = vllm_inputs(catalog, tier()).drafter
    assert (drafter.kind, drafter.depth, drafter.layers, drafter.window) == (DrafterKind.DFLASH2, 7, 5, 2048)
    assert drafter.replicated_bytes == 2 * 248320 * 256 * 2
    assert drafter.sharded_bytes > 0


def test_every_vllm_tier_has_a_known_format(catalog: Catalog) -> None:
    for slug, key in catalog.tiers.items():
        if key.engine == "vllm":
            artifact = catalog.artifacts[resolve(catalog, slug, Layers()).artifact.value]
            assert weight_format(catalog, artifact) is not None, slug


def test_a_format_that_is_not_known_weighs_its_files(catalog: Catalog, tier: MakeTier) -> None:
    artifact = replace(catalog.artifacts[tier().artifact.value], quant="ternary", quantization=None)
    other = replace(catalog, artifacts={**catalog.artifacts, artifact.id: artifact})
    inputs = vllm_inputs(other, tier())
    assert inputs.weights.sharded == artifact.size_bytes
    assert "ternary" in inputs.weights.basis


@pytest.mark.parametrize(
    ("named", "count"), [(None, 4), ("0", 1), ("1, 3", 2), ("2,2", 1), ("9", 0), ("GPU-1f,GPU-2f", 4), ("", 4)]
)
def test_gpus_by_number(catalog: Catalog, tier: MakeTier, named: str | None, count: int) -> None:
    assert len(tier_cards(catalog, tier(gpu_ids=named), rig_of_words(catalog, "4x3090"))) == count
