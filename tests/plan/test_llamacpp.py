"""Verdicts of llama.cpp tiers: in host memory and on GPUs, at the edges of fitting, and where nothing is known."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from redline.catalog.fields import ResolvedTier
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.plan.cards import rig_of_words
from redline.plan.llamacpp import plan_gguf, plan_on_host
from redline.plan.types import Verdict
from redline.rig.types import Rig
from redline.settings import Layers, Sourced
from redline.units import GIB, MIB

CPU = "llamacpp/smollm2-135m-cpu-fast"
SINGLE = "llamacpp/qwen38-27b-single-iq4xs"
DUAL = "llamacpp/qwen38-27b-dual-q8kxl"

MakeTier = Callable[..., ResolvedTier]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture
def tier(catalog: Catalog) -> MakeTier:
    def build(slug: str, **values: Any) -> ResolvedTier:
        found = resolve(catalog, slug, Layers())
        return replace(found, **{name: Sourced(value, "test") for name, value in values.items()})  # type: ignore[arg-type]

    return build


def _host(catalog: Catalog, available: int) -> Rig:
    return replace(
        rig_of_words(catalog, "1x3090"), gpus=(), memory_total_bytes=8 * GIB, memory_available_bytes=available
    )


def test_a_small_model_fits_a_small_host(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(CPU), _host(catalog, 4 * GIB))
    assert plan.verdict is Verdict.FIT
    assert [device.device for device in plan.devices] == ["host"]
    assert all(term.basis for term in plan.devices[0].terms)


def test_the_verdict_turns_at_the_need(catalog: Catalog, tier: MakeTier) -> None:
    need = plan_gguf(catalog, tier(CPU), _host(catalog, 4 * GIB)).devices[0].need_bytes
    assert plan_gguf(catalog, tier(CPU), _host(catalog, need - 1)).verdict is Verdict.NO
    assert plan_gguf(catalog, tier(CPU), _host(catalog, need)).verdict is Verdict.TIGHT


def test_the_largest_context_is_the_last_that_fits(catalog: Catalog, tier: MakeTier) -> None:
    rig = _host(catalog, 300 * MIB)
    largest = plan_gguf(catalog, tier(CPU), rig).largest_context
    assert largest is not None
    assert 0 < largest < 8192
    fixed = tier(CPU, batch_tokens=32)  # the mask grows with the context too, so a small batch keeps it out of this
    largest = plan_gguf(catalog, fixed, rig).largest_context or 0
    at, beyond = (
        plan_on_host(catalog, tier(CPU, batch_tokens=32, max_model_len=n), rig) for n in (largest, largest + 64)
    )
    assert at.verdict is not Verdict.NO
    assert beyond.verdict is Verdict.NO


def test_a_refusal_says_what_would_fit(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(CPU), _host(catalog, 300 * MIB))
    assert plan.verdict is Verdict.NO
    assert plan.suggestions[0].change == f"MAX_MODEL_LEN={plan.largest_context}"


def test_nothing_is_suggested_where_nothing_fits(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(CPU), _host(catalog, 10 * MIB))
    assert (plan.verdict, plan.suggestions, plan.largest_context) == (Verdict.NO, (), 0)


def test_one_card_and_two(catalog: Catalog, tier: MakeTier) -> None:
    one = plan_gguf(catalog, tier(SINGLE), rig_of_words(catalog, "1x3090"))
    two = plan_gguf(catalog, tier(DUAL), rig_of_words(catalog, "2x3090"))
    assert one.verdict is not Verdict.NO
    assert len(two.devices) == 2
    assert any("spread" in note for note in two.notes)


def test_too_few_cards(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(DUAL), rig_of_words(catalog, "1x3090"))
    assert plan.verdict is Verdict.NO
    assert "spread over 2 GPU(s)" in plan.reasons[0]


def test_a_context_beyond_the_model(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(SINGLE, max_model_len=2**22), rig_of_words(catalog, "1x3090"))
    assert plan.verdict is Verdict.NO
    assert "262,144" in plan.reasons[0]


def test_weights_of_unknown_size(catalog: Catalog, tier: MakeTier) -> None:
    found = tier(SINGLE)
    bare = replace(catalog.artifacts[found.artifact.value], files=(), published_gib=None)
    other = replace(catalog, artifacts={**catalog.artifacts, bare.id: bare})
    plan = plan_gguf(other, found, rig_of_words(catalog, "1x3090"))
    assert (plan.verdict, plan.devices) == (Verdict.UNKNOWN, ())


@pytest.mark.parametrize("slug", [CPU, SINGLE])
def test_a_cache_type_without_a_formula(catalog: Catalog, tier: MakeTier, slug: str) -> None:
    plan = plan_gguf(catalog, tier(slug, kv_cache_dtype="tq3"), rig_of_words(catalog, "1x3090"))
    assert plan.verdict is Verdict.UNKNOWN
    assert "tq3" in plan.reasons[0]


@pytest.mark.parametrize("split", ["x,y", "", "0.55,0.45", "1e400,1", "nan,1"])
def test_any_words_for_a_split_give_a_plan(catalog: Catalog, tier: MakeTier, split: str) -> None:
    plan = plan_gguf(catalog, tier(DUAL, tensor_split=split), rig_of_words(catalog, "2x3090"))
    assert plan.verdict in Verdict


def test_a_larger_context_on_a_card_is_refused_where_it_does_not_fit(catalog: Catalog, tier: MakeTier) -> None:
    plan = plan_gguf(catalog, tier(SINGLE, kv_cache_dtype="f16"), rig_of_words(catalog, "1x3090"))
    assert plan.verdict is Verdict.NO
    assert 0 < (plan.largest_context or 0) < 262144
    again = plan_gguf(
        catalog, tier(SINGLE, kv_cache_dtype="f16", max_model_len=plan.largest_context), rig_of_words(catalog, "1x3090")
    )
    assert again.verdict is not Verdict.NO


def test_a_block_drafters_file_and_cache_are_counted(catalog: Catalog, tier: MakeTier) -> None:
    slug = "llamacpp/smollm2-135m-cpu-ultrafast"
    host = _host(catalog, 4 * GIB)
    terms = {term.name: term.best_bytes for term in plan_gguf(catalog, tier(slug), host).devices[0].terms}
    assert terms["drafter"] == catalog.artifacts["smollm2-135m-dflash2"].size_bytes
    assert terms["drafter cache"] == 2 * 3 * 64 * 2 * 2 * (512 + 512)
    without = plan_gguf(catalog, tier(slug, spec_n=0), host).devices[0]
    assert not {"drafter", "drafter cache"} & {term.name for term in without.terms}
