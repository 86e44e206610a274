"""Verdicts of vLLM plans: the seeds' questions answered, the reasons in words, and no input that breaks them."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.plan.conftest import MakeCards, MakeInputs

from redline.catalog.types import Catalog
from redline.plan.cards import Card, cards_of, rig_of_words, with_free
from redline.plan.types import FitPlan, Verdict
from redline.plan.vllm import plan_vllm
from redline.plan.weights import WeightBytes

GIB = 2**30


def test_dual_ultrafast_holds_what_was_measured(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_vllm(shapes, make("int4", "dflash7"), cards("2x3090"))
    assert plan.pool_tokens == pytest.approx(212_977, rel=0.01)
    assert plan.verdict in (Verdict.FIT, Verdict.TIGHT)
    assert any("262,144 does not fit" in note and "blocks" in note for note in plan.notes)


def test_and_the_full_context_is_refused_with_numbers(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_vllm(shapes, make("int4", "dflash7", max_model_len=262_144), cards("2x3090"))
    assert plan.verdict is Verdict.NO
    assert "1,378 blocks" in plan.reasons[0]
    assert 200_000 < (plan.largest_context or 0) < 225_000


def test_multi4_supermax_reaches_the_full_context(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    inputs = make("fp8", "dflash7", tensor_parallel=4, gpu_memory_utilization=0.92, kv_cache_dtype="fp8_e4m3",
                  max_model_len=262_144, max_num_seqs=2)  # fmt: skip
    plan = plan_vllm(shapes, inputs, cards("4x3090"))
    assert plan.largest_context == 262_144
    assert plan.pool_range_tokens is not None
    assert 262_144 < plan.pool_range_tokens.low < plan.pool_range_tokens.best < plan.pool_range_tokens.high


def test_dflash15_is_answered_without_a_guess(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    inputs = make("int4", "dflash7", max_model_len=244_320, gpu_memory_utilization=0.85)
    undeclared = WeightBytes(sharded=0, replicated=0, mtp=0, basis="not declared")
    inputs = inputs.changed(
        drafter=replace(inputs.drafter, depth=15), weights=undeclared, patched_allocator="the profile's own groups"
    )
    plan = plan_vllm(shapes, inputs, cards("2x3090"))
    assert plan.verdict is Verdict.UNKNOWN
    assert any("room for weights of at most 11.9 GiB" in reason for reason in plan.reasons), plan.reasons
    assert any("the profile's own groups" in reason for reason in plan.reasons)
    assert plan.pool_tokens is None


def test_with_known_weights_a_patched_allocator_is_still_unknown(
    shapes: Catalog, make: MakeInputs, cards: MakeCards
) -> None:
    plan = plan_vllm(shapes, make("int4", "dflash7", patched_allocator="a patch"), cards("2x3090"))
    assert plan.verdict is Verdict.UNKNOWN
    assert "a patch" in plan.reasons[0]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"max_model_len": 300_000}, "more than the architecture"),
        ({"max_model_len": 0}, "positive"),
        ({"gpu_memory_utilization": 1.5}, "not between 0 and 1"),
        ({"gpu_memory_utilization": 0.0}, "not between 0 and 1"),
        ({"batched_tokens": -1}, "positive"),
        ({"tensor_parallel": 8}, "this rig has 2x NVIDIA GeForce RTX 3090"),
    ],
)
def test_absurd_settings_are_no_with_a_reason(
    shapes: Catalog, make: MakeInputs, cards: MakeCards, changes: dict[str, object], word: str
) -> None:
    plan = plan_vllm(shapes, make(**changes), cards("2x3090"))
    assert plan.verdict is Verdict.NO
    assert word in plan.reasons[0]
    assert plan.pool_tokens is None


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"engine_version": "9.9"}, "is not known here"),
        ({"kv_cache_dtype": "nvfp4"}, "no formula for a cache of type"),
        ({"tensor_parallel": 3}, "split over"),
        ({"tensor_parallel": 5}, "cannot be split"),
    ],
)
def test_what_is_not_known_is_unknown(
    shapes: Catalog, make: MakeInputs, cards: MakeCards, changes: dict[str, object], word: str
) -> None:
    plan = plan_vllm(shapes, make(**changes), cards("8x3090"))
    assert plan.verdict is Verdict.UNKNOWN
    assert word in plan.reasons[0]


def test_zero_gpus(shapes: Catalog, make: MakeInputs) -> None:
    plan = plan_vllm(shapes, make(), ())
    assert plan.verdict is Verdict.NO
    assert "no GPU" in plan.reasons[0]


def test_more_asked_than_free_is_refused_by_the_engine(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_vllm(shapes, make(), with_free(cards("2x3090"), 20 * GIB))
    assert plan.verdict is Verdict.NO
    assert "refuses to start" in plan.reasons[0]


def test_the_fuller_card_decides(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    one, other = cards("2x3090")
    both = plan_vllm(shapes, make(max_model_len=65536), (one, other))
    uneven = plan_vllm(shapes, make(max_model_len=65536), (one, replace(other, free_bytes=19 * GIB)))
    assert both.verdict is Verdict.FIT
    assert uneven.verdict is Verdict.NO
    assert [device.verdict for device in uneven.devices] == [Verdict.FIT, Verdict.NO]


def test_a_third_card_that_is_free_is_preferred(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    busy, *rest = cards("3x3090")
    plan = plan_vllm(shapes, make(max_model_len=65536), (replace(busy, free_bytes=GIB), *rest))
    assert plan.verdict is Verdict.FIT


def test_mixed_cards_are_said(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_vllm(shapes, make(max_model_len=65536), cards("1x5090+1x3090"))
    assert plan.verdict is Verdict.TIGHT
    assert any("different architectures" in reason for reason in plan.reasons)


def test_little_left_outside_the_budget_is_tight(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    asked = make("int4", "mtp3", gpu_memory_utilization=0.95, max_model_len=65536)
    assert plan_vllm(shapes, asked, cards("2x3090")).verdict is Verdict.TIGHT
    assert plan_vllm(shapes, asked.changed(gpu_memory_utilization=0.9), cards("2x3090")).verdict is Verdict.FIT


def test_another_shape_gets_a_wider_band(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    known = plan_vllm(shapes, make(), cards("2x3090"))
    other = plan_vllm(shapes, make().changed(model="another-27b"), cards("2x3090"))

    def width(plan: FitPlan) -> int:
        assert plan.pool_range_tokens is not None
        return plan.pool_range_tokens.high - plan.pool_range_tokens.low

    assert width(other) > 2 * width(known)


def test_terms_add_up_to_the_budget(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    for device in plan_vllm(shapes, make("int4", "dflash7"), cards("2x3090")).devices:
        assert device.need_bytes + device.spare_bytes == device.available_bytes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    weights=st.sampled_from(["int4", "fp8", "nvfp4"]),
    drafter=st.sampled_from(["none", "mtp3", "dflash7"]),
    values=st.fixed_dictionaries(
        {
            "tensor_parallel": st.integers(-1, 9),
            "gpu_memory_utilization": st.one_of(st.floats(-1, 2), st.just(float("nan"))),
            "max_model_len": st.integers(-5, 10**9),
            "max_num_seqs": st.integers(-1, 2000),
            "batched_tokens": st.integers(-1, 10**7),
            "kv_cache_dtype": st.sampled_from(["auto", "fp8", "bfloat16", "tq3", ""]),
            "engine_version": st.sampled_from(["0.33.0", "0.27.1", "0.29.0", "1.0", ""]),
            "block_size": st.sampled_from([None, 1, 16, 64, 4096]),
        }
    ),
    rig=st.sampled_from(["2x3090", "1x5090", "4x3090", "h200", "0x3090", "1x5090+1x3090", "8x3090"]),
    free=st.floats(0, 40),
)
def test_no_settings_break_a_plan(
    shapes: Catalog, make: MakeInputs, weights: str, drafter: str, values: dict[str, object], rig: str, free: float
) -> None:
    found = with_free(cards_of(shapes, rig_of_words(shapes, rig)), round(free * GIB))
    plan = plan_vllm(shapes, make(weights, drafter, **values), found)
    assert plan.verdict in set(Verdict)
    assert plan.reasons or plan.verdict in (Verdict.FIT, Verdict.TIGHT)
    if plan.pool_tokens is not None:
        assert plan.boots
        assert plan.rules
    if plan.verdict is Verdict.FIT:
        assert (plan.largest_context or 0) >= plan.context


def test_cards_keep_their_names(cards: MakeCards) -> None:
    card: Card = cards("1x5090")[0]
    assert (card.compute, card.hardware) == ("12.0", "rtx-5090")
