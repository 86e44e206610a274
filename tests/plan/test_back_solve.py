"""Boot facts back into blocks: recorded boots agree, patched and mixed logs do not, and no facts raise."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.catalog.load import load_catalog
from redline.catalog.types import Catalog
from redline.plan.back_solve import BackSolved, back_solve, card_of_facts, inputs_of_facts
from redline.plan.boots import check_boot, inputs_of_boot
from redline.plan.cards import Card
from redline.plan.geometry import pool_tokens
from redline.plan.types import BootFacts, Verdict
from redline.units import GIB

CATALOG = load_catalog()


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return CATALOG


def _facts(catalog: Catalog, boot_id: str) -> BootFacts:
    boot = catalog.boots[boot_id]
    gpu = catalog.hardware[boot.hardware]
    return BootFacts(
        engine="vllm",
        engine_version=boot.engine_version,
        available_bytes=round(boot.available_gib * GIB) if boot.available_gib is not None else None,
        pool_tokens=boot.pool_tokens,
        context=boot.max_model_len,
        gpu_memory_utilization=boot.gpu_memory_utilization,
        gpu_name=gpu.title,
        refused=boot.refused,
    )


def _solve(catalog: Catalog, boot_id: str, **changes: object) -> BackSolved:
    boot = catalog.boots[boot_id]
    facts = replace(_facts(catalog, boot_id), **changes)  # type: ignore[arg-type]
    inputs = inputs_of_facts(inputs_of_boot(catalog, boot), facts)
    return back_solve(catalog, facts, inputs, card_of_facts(catalog, facts))


def _boots_with_both(catalog: Catalog) -> list[str]:
    return [
        b.id
        for b in catalog.boots.values()
        if b.available_gib and b.pool_tokens and not b.approximate and not b.held_out
    ]


def test_every_boot_that_logs_both_agrees(catalog: Catalog) -> None:
    ids = _boots_with_both(catalog)
    assert len(ids) >= 10
    for boot_id in ids:
        solved = _solve(catalog, boot_id)
        assert solved.consistent is True, (boot_id, solved.reasons)
        assert solved.blocks == check_boot(catalog, catalog.boots[boot_id]).blocks
        assert solved.blocks_low is not None
        assert solved.blocks_high is not None
        assert solved.blocks_low <= (solved.blocks or 0) <= solved.blocks_high


def test_a_boot_becomes_a_record_that_says_the_same(catalog: Catalog) -> None:
    boot_id = _boots_with_both(catalog)[0]
    solved, row = _solve(catalog, boot_id), catalog.boots[boot_id]
    assert solved.boot is not None
    assert solved.boot.hardware == row.hardware
    assert (solved.boot.pool_tokens, solved.boot.available_gib) == (row.pool_tokens, row.available_gib)
    again = check_boot(catalog, replace(solved.boot, id="again"))
    assert again.blocks == solved.blocks


def test_the_error_is_that_of_the_tokens(catalog: Catalog) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0])
    assert solved.error is not None
    assert solved.predicted.pool_tokens
    assert solved.error == solved.predicted.pool_tokens / (solved.facts.pool_tokens or 1) - 1
    assert abs(solved.error) < 0.05


def test_tokens_that_are_no_blocks_are_another_allocator(catalog: Catalog) -> None:
    row = catalog.boots[_boots_with_both(catalog)[0]]
    solved = _solve(catalog, row.id, pool_tokens=(row.pool_tokens or 0) + 3)
    assert solved.consistent is False
    assert solved.boot is None
    assert any("no integer number of blocks" in reason for reason in solved.reasons)


def test_bytes_of_one_boot_and_tokens_of_another(catalog: Catalog) -> None:
    row = catalog.boots[_boots_with_both(catalog)[0]]
    geometry = check_boot(catalog, row).geometry
    solved = _solve(
        catalog,
        row.id,
        pool_tokens=pool_tokens(geometry, 3 * (check_boot(catalog, row).blocks or 0), row.max_model_len),
    )
    assert solved.consistent is False
    assert any("two boots in one log" in reason for reason in solved.reasons)


def test_another_block_size_than_the_rules_give(catalog: Catalog) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0], block_tokens=17)
    assert solved.consistent is False
    assert any("17 tokens a block" in reason for reason in solved.reasons)


def test_the_recorded_refusal_is_a_refusal(catalog: Catalog) -> None:
    refused = [b.id for b in catalog.boots.values() if b.refused]
    assert refused
    for boot_id in refused:
        solved = _solve(catalog, boot_id)
        assert solved.consistent is True, solved.reasons
        assert any("refused" in reason for reason in solved.reasons)


def test_a_refusal_that_would_have_fitted_is_another_allocator(catalog: Catalog) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0], refused=True, pool_tokens=None)
    assert solved.consistent is False
    assert any("would be enough" in reason for reason in solved.reasons)


def test_an_unknown_version_says_so(catalog: Catalog) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0], engine_version="0.99.0")
    assert (solved.blocks, solved.consistent, solved.error) == (None, None, None)
    assert "0.99.0" in solved.reasons[0]
    assert solved.predicted.verdict is Verdict.UNKNOWN


def test_a_log_without_numbers_decides_nothing(catalog: Catalog) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0], pool_tokens=None, available_bytes=None)
    assert (solved.consistent, solved.overhead_bytes, solved.boot) == (None, None, None)


def test_cards_by_name_by_memory_and_not_at_all(catalog: Catalog) -> None:
    by_name = card_of_facts(catalog, BootFacts(engine="vllm", gpu_name="NVIDIA GeForce RTX 5090"))
    by_size = card_of_facts(catalog, BootFacts(engine="vllm", total_bytes=round(23.56 * GIB)))
    assert isinstance(by_name, Card)
    assert by_name.hardware == "rtx-5090"
    assert by_size is not None
    assert by_size.hardware == "rtx-3090"
    assert card_of_facts(catalog, BootFacts(engine="vllm", total_bytes=5 * GIB)) is None
    assert card_of_facts(catalog, BootFacts(engine="vllm")) is None


COUNTS = st.none() | st.sampled_from([-1, 0, 1, 2, 3, 8, 1000, 10**9, 10**30]) | st.integers(-10, 10**6)
BYTES = st.none() | st.integers(-(10**13), 10**13)
WORDS = st.none() | st.sampled_from(["", "0.33.0", "v0.27.1", "9", "x.y", "fp8", "auto", "tq3", "triton", "flashinfer"])


@pytest.mark.parametrize("context", [0, -10])
def test_a_context_that_no_engine_serves_is_said(catalog: Catalog, context: int) -> None:
    solved = _solve(catalog, _boots_with_both(catalog)[0], context=context, pool_tokens=-1)
    assert (solved.blocks, solved.consistent, solved.boot) == (None, None, None)
    assert f"a context of {context} tokens" in solved.reasons[0]


@given(
    st.builds(
        BootFacts,
        engine=st.just("vllm"),
        engine_version=WORDS,
        available_bytes=BYTES,
        blocks=COUNTS,
        block_tokens=COUNTS,
        pool_tokens=COUNTS,
        context=COUNTS,
        tensor_parallel=COUNTS,
        gpu_memory_utilization=st.none() | st.floats(-2, 1e9),
        max_num_seqs=COUNTS,
        batched_tokens=COUNTS,
        kv_cache_dtype=WORDS,
        speculative_tokens=COUNTS,
        gdn_prefill=WORDS,
        total_bytes=BYTES,
        free_bytes=BYTES,
        gpu_name=WORDS | st.just("NVIDIA GeForce RTX 3090"),
        refused=st.booleans(),
    )
)
@settings(max_examples=150, deadline=None)
def test_no_facts_raise(facts: BootFacts) -> None:
    inputs = inputs_of_facts(inputs_of_boot(CATALOG, next(iter(CATALOG.boots.values()))), facts)
    back_solve(CATALOG, facts, inputs, card_of_facts(CATALOG, facts))
