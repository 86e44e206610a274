"""Suggestions: planned again, in order, only where they help; and the trade in one sentence."""

from dataclasses import replace

from tests.plan.conftest import MakeCards, MakeInputs

from redline.catalog.types import Catalog
from redline.plan.cards import with_free
from redline.plan.dispatch import plan_inputs_in_full
from redline.plan.inputs import VllmInputs
from redline.plan.suggest import ORDER, missing_cards, suggest
from redline.plan.trade import trade_sentence
from redline.plan.types import FitPlan, Verdict
from redline.plan.vllm import plan_vllm

GIB = 2**30


def changes(plan: FitPlan) -> list[str]:
    return [item.change for item in plan.suggestions]


def test_what_does_not_fit_gets_ways_out_in_order(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    inputs = make("int4", "dflash7", max_model_len=262_144)
    plan = plan_inputs_in_full(shapes, inputs, cards("2x3090"))
    assert plan.verdict is Verdict.NO
    words = changes(plan)
    assert words[0].startswith("MAX_MODEL_LEN=2")
    assert "KV_CACHE_DTYPE=fp8_e4m3" in words
    assert "SPEC_N=0" in words
    assert words[-1] == "4x NVIDIA GeForce RTX 3090"
    assert words.index("KV_CACHE_DTYPE=fp8_e4m3") < words.index("SPEC_N=0")


def test_every_suggestion_holds_when_planned_again(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    rig = cards("2x3090")
    inputs = make("int4", "dflash7", max_model_len=262_144)
    tried: list[VllmInputs] = []

    def planner(other: VllmInputs) -> FitPlan:
        tried.append(other)
        return plan_vllm(shapes, other, rig)

    plan = planner(inputs)
    found = suggest(plan, inputs, rig, planner)
    assert found
    assert all(ORDER[item.verdict] < ORDER[plan.verdict] for item in found)
    assert {item.context for item in found} <= {other.max_model_len for other in tried}


def test_the_worst_estimate_comes_before_the_best(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_inputs_in_full(shapes, make("int4", "dflash7", max_model_len=262_144), cards("2x3090"))
    safe, best = (item for item in plan.suggestions if item.change.startswith("MAX_MODEL_LEN"))
    assert (safe.context or 0) < (best.context or 0)
    assert (safe.verdict, best.verdict) == (Verdict.FIT, Verdict.TIGHT)


def test_a_busy_card_wants_a_smaller_share(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_inputs_in_full(shapes, make(max_model_len=65536), with_free(cards("2x3090"), 20 * GIB))
    assert changes(plan)[0] == "GPU_MEMORY_UTILIZATION=0.84"


def test_what_fits_is_told_how_to_reach_the_full_context(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_inputs_in_full(shapes, make("int4", "dflash7", max_model_len=131_072), cards("2x3090"))
    assert plan.verdict is Verdict.FIT
    assert plan.suggestions
    assert all(change.startswith("MAX_MODEL_LEN=262144 with ") for change in changes(plan))


def test_nothing_is_suggested_where_nothing_is_missing(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_inputs_in_full(
        shapes, make("int4", "none", max_model_len=262_144, kv_cache_dtype="fp8"), cards("2x5090")
    )
    assert plan.verdict is Verdict.FIT
    assert plan.suggestions == ()


def test_blocks_that_kernels_divide_evenly(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    """With vLLM 0.33.0 and FlashInfer, --block-size 64 turns 289 blocks of a window into 13 (asked of vLLM itself)."""
    inputs = make("int4", "dflash7", kv_cache_dtype="fp8_e4m3", max_model_len=262_144)
    plan = plan_inputs_in_full(shapes, inputs, cards("2x3090"))
    assert changes(plan) == ["ENGINE_ARGS='--block-size 64'"]
    even = plan_vllm(shapes, inputs.changed(block_size=64), cards("2x3090"))
    assert (plan.block_tokens, plan.need_blocks) == (1648, 1020)
    assert (even.block_tokens, even.need_blocks) == (1664, 736)
    assert any("289 blocks for one window" in note for note in plan.notes)
    assert not any("for one window" in note for note in even.notes)


def test_an_unknown_plan_gets_no_suggestions(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    assert plan_inputs_in_full(shapes, make(engine_version="9"), cards("2x3090")).suggestions == ()
    assert plan_inputs_in_full(shapes, make(), ()).suggestions == ()


def test_more_cards_only_where_they_would_do(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    rig = cards("1x3090")
    inputs = make("fp8", "none", tensor_parallel=1, max_model_len=65536)
    plan = plan_vllm(shapes, inputs, rig)
    (found,) = missing_cards(plan, inputs, rig, lambda other, more: plan_vllm(shapes, other, more))
    assert found.change == "2x NVIDIA GeForce RTX 3090"
    impossible = inputs.changed(max_model_len=300_000)
    refused = plan_vllm(shapes, impossible, rig)
    assert missing_cards(refused, impossible, rig, lambda other, more: plan_vllm(shapes, other, more)) == ()


def trade(shapes: Catalog, inputs: VllmInputs, cards: MakeCards, words: str) -> str:
    rig = cards(words)

    def planner(other: VllmInputs) -> FitPlan:
        return plan_vllm(shapes, other, rig)

    return trade_sentence(planner(inputs), inputs, rig[0].compute, planner, ("128/231 tok/s", "78/141 tok/s"))


def test_the_trade_on_flash_attention_2(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    from_wide = trade(shapes, make("int4", "dflash7"), cards, "2x3090")
    from_narrow = trade(shapes, make("int4", "dflash7", kv_cache_dtype="fp8_e4m3"), cards, "2x3090")
    for text in (from_wide, from_narrow):
        assert "sm_86 runs FlashAttention 2, which cannot read an fp8 cache" in text
        assert "(128/231 tok/s), fp8 on FlashInfer the full 262,144 tokens (78/141 tok/s)" in text
    assert from_wide == from_narrow


def test_on_hopper_super_and_ultra_are_one(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    text = trade(shapes, make("int4", "dflash7"), cards, "2xh200")
    assert "FlashAttention reads an fp8 cache on sm_90" in text
    assert "super and ultra are one tier here" in text


def test_no_pool_no_trade(shapes: Catalog, make: MakeInputs, cards: MakeCards) -> None:
    plan = plan_vllm(shapes, make(engine_version="9"), cards("2x3090"))
    assert trade_sentence(plan, make(), "8.6", lambda _: plan, (None, None)) == ""
    known = plan_vllm(shapes, make(), cards("2x3090"))
    assert trade_sentence(known, make(), None, lambda _: plan, (None, None)) == ""
    assert trade_sentence(known, replace(make(), kv_cache_dtype="tq3"), "8.6", lambda _: plan, (None, None)) == ""
