"""Which allocator constants hold where, and that nothing stands in for what is not known."""

import pytest
from tests.plan.conftest import MakeInputs

from redline.catalog.types import Catalog
from redline.plan.inputs import UnknownPlanError
from redline.plan.rules import allocator_rules, attention_backend_of, rules_of


def test_the_engine_chooses_its_own_prefill(shapes: Catalog) -> None:
    assert allocator_rules(shapes, "0.33.0", None, "8.6")[1] == "vllm-triton"
    assert allocator_rules(shapes, "0.33.0", None, "9.0")[1] == "vllm-flashinfer"
    assert allocator_rules(shapes, "0.33.0", "triton", "9.0")[1] == "vllm-triton"


@pytest.mark.parametrize(
    ("version", "prefill", "compute"),
    [
        ("0.99.0", None, "8.6"),
        ("0.10", None, "8.6"),
        ("0.33.0", "flashinfer", "8.6"),
        ("0.33.0", None, "10.0"),
        ("x", None, None),
    ],
)
def test_unknown_is_unknown(shapes: Catalog, version: str, prefill: str | None, compute: str | None) -> None:
    with pytest.raises(UnknownPlanError):
        allocator_rules(shapes, version, prefill, compute)


def test_a_model_without_recurrent_layers_does_not_ask_for_their_kernels(shapes: Catalog) -> None:
    assert allocator_rules(shapes, "0.33.0", "triton", "7.5", recurrent=False)[1] == "vllm-triton"


def test_the_null_block_came_with_a_version(shapes: Catalog) -> None:
    assert allocator_rules(shapes, "0.27.1", None, "8.6")[0].null_blocks == 0
    assert allocator_rules(shapes, "0.33.0", None, "8.6")[0].null_blocks == 1


@pytest.mark.parametrize(
    ("kv", "compute", "asked", "expected"),
    [
        ("bfloat16", "8.6", None, "FLASH_ATTN"),
        ("fp8_e4m3", "8.6", None, "FLASHINFER"),
        ("fp8_e4m3", "12.0", None, "FLASHINFER"),
        ("fp8_e4m3", "9.0", None, "FLASH_ATTN"),
        ("fp8_e4m3", "8.6", "triton_attn", "TRITON_ATTN"),
    ],
)
def test_attention_back_end(make: MakeInputs, kv: str, compute: str, asked: str | None, expected: str) -> None:
    assert attention_backend_of(make(kv_cache_dtype=kv, attention_backend=asked), compute) == expected


def test_flashinfer_gives_sliding_layers_blocks_of_its_own(shapes: Catalog, make: MakeInputs) -> None:
    fp8 = make("int4", "dflash7", kv_cache_dtype="fp8_e4m3")
    assert rules_of(shapes, fp8, "8.6")[0].sliding_block_sizes == (16, 32, 64)
    assert rules_of(shapes, fp8.changed(engine_version="0.27.1"), "8.6")[0].sliding_block_sizes == ()
    assert rules_of(shapes, fp8.changed(block_size=64), "8.6")[0].default_block_tokens == 64
