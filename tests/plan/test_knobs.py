"""Settings of plans without a tier: names, bounds, and what is said of the others."""

import pytest
from tests.plan.conftest import MakeInputs

from redline.catalog.types import DrafterKind
from redline.errors import UsageError
from redline.plan.knobs import NAMES, apply_sets


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("TP=4", "tensor_parallel", 4),
        ("tp=1", "tensor_parallel", 1),
        ("MAX_MODEL_LEN=1000", "max_model_len", 1000),
        ("MAX_NUM_SEQS=3", "max_num_seqs", 3),
        ("MAX_NUM_BATCHED_TOKENS=4096", "batched_tokens", 4096),
        ("BLOCK_SIZE=64", "block_size", 64),
        ("GPU_MEMORY_UTILIZATION=0.8", "gpu_memory_utilization", 0.8),
        ("PREFIX_CACHING=off", "prefix_caching", False),
        ("KV_CACHE_DTYPE=fp8", "kv_cache_dtype", "fp8"),
        ("ATTN_BACKEND=FLASHINFER", "attention_backend", "FLASHINFER"),
        ("GDN_PREFILL_BACKEND=triton", "gdn_prefill", "triton"),
        ("ENGINE_VERSION=0.30.0", "engine_version", "0.30.0"),
    ],
)
def test_each_name_sets_its_field(make: MakeInputs, text: str, field: str, value: object) -> None:
    assert getattr(apply_sets(make(), [text]), field) == value


def test_spec_n_is_the_built_in_drafter(make: MakeInputs) -> None:
    on, off = apply_sets(make(), ["SPEC_N=3"]).drafter, apply_sets(make("int4", "mtp3"), ["SPEC_N=0"]).drafter
    assert (on.kind, on.depth) == (DrafterKind.MTP, 3)
    assert off.depth == 0


def test_later_settings_win(make: MakeInputs) -> None:
    assert apply_sets(make(), ["TP=2", "TP=4"]).tensor_parallel == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "TP",
        "=4",
        "TP=",
        "TP=0",
        "TP=-1",
        "TP=1e9",
        "TP=65",
        "COLOUR=red",
        "MAX_MODEL_LEN=0",
        "MAX_MODEL_LEN=99999999999",
        "GPU_MEMORY_UTILIZATION=0",
        "GPU_MEMORY_UTILIZATION=1.01",
        "GPU_MEMORY_UTILIZATION=nan",
        "SPEC_N=-1",
        "SPEC_N=65",
        "PREFIX_CACHING=perhaps",
        "MAX_NUM_BATCHED_TOKENS=1",
        "BLOCK_SIZE=0",
    ],
)
def test_what_cannot_be_is_refused(make: MakeInputs, text: str) -> None:
    with pytest.raises(UsageError):
        apply_sets(make(), [text])


def test_a_slip_names_the_nearest(make: MakeInputs) -> None:
    with pytest.raises(UsageError) as caught:
        apply_sets(make(), ["MAX_MODEL_LENGTH=5"])
    assert "MAX_MODEL_LEN" in str(caught.value.next_step)


def test_the_names_are_said_where_none_is_near(make: MakeInputs) -> None:
    with pytest.raises(UsageError) as caught:
        apply_sets(make(), ["qqq=5"])
    assert all(name in str(caught.value.next_step) for name in NAMES)
