"""What a decoding step moves, and what rate follows from it."""

from dataclasses import replace

import pytest

from redline.catalog.memory import StepModel
from redline.catalog.types import Catalog
from redline.plan.boots import inputs_of_boot
from redline.plan.cards import cards_of, rig_of_words
from redline.plan.inputs import VllmInputs
from redline.plan.step_time import estimate_decode, step_seconds, step_work
from redline.plan.vllm import plan_vllm

MODEL = StepModel(
    id="test",
    hardware="h200",
    compute=("9.0",),
    engine_versions=("0.33.0",),
    weights=("bf16",),
    families=("qwen3_5",),
    copy_bytes_s=4e12,
    share=0.8,
    fixed_ms=1.0,
    token_us=10.0,
    pass_ms=0.5,
    split_ms=2.0,
    band=0.1,
    source="a test",
)


@pytest.fixture
def plain(shapes: Catalog) -> VllmInputs:
    return inputs_of_boot(shapes, shapes.boots["h200-none-bf16-flashinfer-graphs"])


def drafting(shapes: Catalog, name: str) -> VllmInputs:
    return inputs_of_boot(shapes, shapes.boots[f"h200-{name}-bf16-triton-graphs"])


def test_weights_are_read_once_and_the_embedding_is_looked_up(plain: VllmInputs) -> None:
    work = step_work(plain, batch=1, context_tokens=0)
    table = 248320 * 5120 * 2
    assert work.weight_bytes == plain.weights.on_card(1) - table
    assert (work.draft_bytes, work.passes, work.tokens, work.split) == (0, 0, 1, False)


def test_the_cache_grows_with_batch_and_context(plain: VllmInputs) -> None:
    first, second = (step_work(plain, batch=2, context_tokens=tokens).cache_bytes for tokens in (1000, 2000))
    assert second - first == 2 * 1000 * 16 * 4 * 256 * 2 * 2
    assert step_work(plain, batch=4, context_tokens=1000).cache_bytes == 2 * first


def test_a_built_in_drafter_runs_once_a_token_and_a_block_drafter_once(shapes: Catalog) -> None:
    built_in = step_work(drafting(shapes, "mtp-3"), batch=1, context_tokens=512)
    block = step_work(drafting(shapes, "dflash2-7"), batch=1, context_tokens=512)
    assert (built_in.passes, block.passes) == (3, 1)
    assert (built_in.tokens, block.tokens) == (4, 8)
    assert built_in.draft_bytes > 3 * 248320 * 5120 * 2


def test_the_window_of_a_block_drafter_bounds_its_cache(shapes: Catalog) -> None:
    inputs = drafting(shapes, "dflash2-7")
    near, far = (step_work(inputs, batch=1, context_tokens=tokens).cache_bytes for tokens in (2048, 4096))
    assert far - near == 2048 * 16 * 4 * 256 * 2 * 2


def test_two_gpus_read_half_each(plain: VllmInputs) -> None:
    one, two = (step_work(plain.changed(tensor_parallel=tp), batch=1, context_tokens=1000) for tp in (1, 2))
    assert two.read_bytes == pytest.approx(one.read_bytes / 2, rel=1e-3)
    assert two.split


def test_seconds_are_the_sum_of_the_terms(plain: VllmInputs) -> None:
    work = replace(step_work(plain, batch=1, context_tokens=0), weight_bytes=8_000_000_000, cache_bytes=0)
    # 8 GB at 0.8 of 4 TB/s is 2.5 ms; one fixed, a hundredth for the token.
    assert step_seconds(MODEL, work, 4e12) == pytest.approx(0.00351)
    assert step_seconds(MODEL, replace(work, split=True, passes=2), 4e12) == pytest.approx(0.00651)


def test_a_rate_is_given_only_where_a_model_covers_it(shapes: Catalog, plain: VllmInputs) -> None:
    catalog = replace(shapes, step_models={"test": MODEL})
    found = estimate_decode(catalog, plain, "h200", accepted=1.0)
    assert found is not None
    assert found.best == pytest.approx(1 / found.step_s)
    assert not found.projected
    assert found.low < found.best < found.high
    other = estimate_decode(catalog, plain, "h100", accepted=1.0)
    assert other is not None
    assert other.projected
    assert other.best < found.best
    assert estimate_decode(catalog, plain, "rtx-3090", accepted=1.0) is None
    assert estimate_decode(catalog, plain.changed(engine_version="0.27.1"), "h200", accepted=1.0) is None
    assert estimate_decode(catalog, plain.changed(weight_format="int4"), "h200", accepted=1.0) is None
    dense = plain.changed(architecture=replace(plain.architecture, family="llama"))
    assert estimate_decode(catalog, dense, "h200", accepted=1.0) is None


def test_a_plan_says_what_a_step_takes_and_where_that_is_from(shapes: Catalog, plain: VllmInputs) -> None:
    def notes(inputs: VllmInputs, rig: str) -> str:
        return " ".join(plan_vllm(shapes, inputs, cards_of(shapes, rig_of_words(shapes, rig))).notes)

    # Measured there: 18.2 ms (docs/gpu.md).
    assert "a step takes 18." in notes(plain, "h200")
    assert "measured on h200" in notes(plain, "h200")
    assert "projected from h200" in notes(plain, "h100")
    assert "a step takes" not in notes(plain.changed(weight_format="int4"), "h200")
    assert "a step takes" not in notes(plain, "a6000")
