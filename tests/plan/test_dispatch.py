"""The tiers of the catalogue on rigs: the answers that were asked for, and none that raises."""

import itertools
from dataclasses import replace

import pytest

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.plan.cards import rig_of_words
from redline.plan.dispatch import plan_tier, plan_tier_in_full
from redline.plan.types import FitPlan, Verdict
from redline.settings import Layers, Sourced

RIGS = ("1x3090", "2x3090", "4x3090", "1x5090", "2x5090", "1x5090+1x3090", "8xh100", "h200", "2xa6000")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def _plan(catalog: Catalog, slug: str, rig: str, **values: object) -> FitPlan:
    tier = resolve(catalog, slug, Layers())
    changed = {name: Sourced(value, "test") for name, value in values.items()}
    return plan_tier_in_full(catalog, replace(tier, **changed), rig_of_words(catalog, rig))  # type: ignore[arg-type]


def test_dual_ultrafast_holds_what_its_boot_logged(catalog: Catalog) -> None:
    plan = _plan(catalog, "vllm/qwen38-27b-dual-ultrafast", "2x3090")
    assert plan.context == 204_800
    assert plan.verdict is not Verdict.NO
    assert plan.pool_tokens == pytest.approx(212_977, rel=0.01)


def test_dual_ultrafast_says_why_the_full_context_does_not_fit(catalog: Catalog) -> None:
    plan = _plan(catalog, "vllm/qwen38-27b-dual-ultrafast", "2x3090", max_model_len=262_144)
    assert plan.verdict is Verdict.NO
    assert "blocks" in plan.reasons[0]
    assert plan.largest_context == pytest.approx(212_977, rel=0.02)
    best = [item for item in plan.suggestions if item.change.startswith("MAX_MODEL_LEN=")]
    assert best
    assert best[0].verdict is not Verdict.NO


def test_the_trade_is_one_sentence(catalog: Catalog) -> None:
    trade = _plan(catalog, "vllm/qwen38-27b-dual-ultrafast", "2x3090").trade
    assert trade.endswith(".")
    assert ". " not in trade
    assert all(word in trade for word in ("FlashAttention 2", "fp8", "bfloat16", "tokens"))


def test_dflash15_is_not_answered_with_a_guess(catalog: Catalog) -> None:
    plan = _plan(catalog, "vllm/qwen38-27b-dual-dflash15-fast", "2x3090")
    assert plan.verdict is Verdict.UNKNOWN
    assert (plan.pool_tokens, plan.largest_context) == (None, None)
    assert any("do not model" in reason for reason in plan.reasons)


def test_multi4_supermax_has_a_number_and_its_bounds(catalog: Catalog) -> None:
    plan = _plan(catalog, "vllm/qwen38-27b-multi4-supermax", "4x3090")
    assert plan.verdict is not Verdict.NO
    assert plan.largest_context == 262_144
    assert plan.pool_range_tokens is not None
    assert 262_144 < plan.pool_range_tokens.low < plan.pool_range_tokens.best < plan.pool_range_tokens.high


@pytest.mark.parametrize("rig", RIGS)
def test_every_tier_has_a_verdict_with_a_reason_on_every_rig(catalog: Catalog, rig: str) -> None:
    host = rig_of_words(catalog, rig)
    for slug in catalog.tiers:
        plan = plan_tier(catalog, resolve(catalog, slug, Layers()), host)
        assert plan.slug == slug
        if plan.verdict in (Verdict.NO, Verdict.UNKNOWN, Verdict.TIGHT):
            assert plan.reasons, slug
        for device in plan.devices:
            assert all(term.basis for term in device.terms)
            assert device.need_low_bytes <= device.need_bytes <= device.need_high_bytes


def test_layers_in_turn_are_not_modelled(catalog: Catalog) -> None:
    plan = _plan(catalog, "vllm/qwen38-27b-dual-fast", "4x3090", pipeline_parallel=2)
    assert plan.verdict is Verdict.UNKNOWN
    assert "pipeline parallel" in plan.reasons[0]


def test_an_engine_without_a_planner(catalog: Catalog) -> None:
    tier = resolve(catalog, "vllm/qwen38-27b-dual-fast", Layers())
    other = replace(tier, key=replace(tier.key, engine="sglang"))
    plan = plan_tier_in_full(catalog, other, rig_of_words(catalog, "2x3090"))
    assert (plan.verdict, plan.reasons) == (Verdict.UNKNOWN, ("no planner for the engine sglang",))


ABSURD: dict[str, tuple[object, ...]] = {
    "max_model_len": (0, -1, 2**40),
    "max_num_seqs": (0, -5, 10**9),
    "batch_tokens": (0, -1, 10**12),
    "tensor_parallel": (0, -1, 3, 5, 10**6),
    "gpu_memory_utilization": (0.0, -1.0, 7.0, float("nan"), float("inf")),
    "spec_n": (-3, 64, 10**6),
    "kv_cache_dtype": ("", "nvfp4", "🙂"),
    "engine_version": ("", "latest", "0.0", "99"),
    "gpu_ids": ("-1", "99999999999999999999", ",,,"),
    "attention_backend": ("", "NONE"),
    "gdn_prefill_backend": ("cutedsl",),
}


@pytest.mark.parametrize(
    ("slug", "field", "value"),
    [
        (slug, field, value)
        for slug, (field, values) in itertools.product(
            ("vllm/qwen38-27b-dual-ultrafast", "llamacpp/qwen38-27b-dual-q8kxl", "llamacpp/smollm2-135m-cpu-fast"),
            ABSURD.items(),
        )
        for value in values
    ],
)
def test_absurd_settings_have_a_verdict(catalog: Catalog, slug: str, field: str, value: object) -> None:
    plan = _plan(catalog, slug, "2x3090", **{field: value})
    assert plan.verdict in Verdict
