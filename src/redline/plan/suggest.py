"""What would help a plan, each change planned again: context, memory, batch, cache type, drafting, more GPUs.

Knows plans as a function of inputs; knows no slug, and no speed beyond the words it is handed.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final

from redline.plan.cards import Card
from redline.plan.inputs import VALUE_BYTES, DrafterShape, VllmInputs
from redline.plan.notes import flash_attention_reads_fp8
from redline.plan.types import FitPlan, Suggestion, Verdict
from redline.units import GIB, format_gib

Planner = Callable[[VllmInputs], FitPlan]

ORDER: Final = {Verdict.FIT: 0, Verdict.TIGHT: 1, Verdict.UNKNOWN: 2, Verdict.NO: 3}
UTILIZATION_STEP: Final = 0.01
UTILIZATION_MOST: Final = 0.97  # beyond it nothing is left for the driver, graphs and long prompts
SMALLER_BATCH: Final = 4096
LEAST_CONTEXT: Final = 2048
EVEN_BLOCK: Final = 64  # FlashInfer's largest block (vLLM 0.33.0 v1/attention/backends/flashinfer.py)


def suggest(plan: FitPlan, inputs: VllmInputs, cards: tuple[Card, ...], planner: Planner) -> tuple[Suggestion, ...]:
    """Return changes that make it fit, or fit better, in the order in which a user would try them.

    For a plan that fits, they are those that would reach the architecture's full context.
    """
    if plan.verdict is Verdict.UNKNOWN or not cards or not 0 < inputs.gpu_memory_utilization <= 1:
        return ()
    wanted = inputs
    if plan.verdict is Verdict.FIT and (
        inputs.max_model_len >= inputs.context_max or plan.largest_context == inputs.context_max
    ):
        return _free_gain(plan, inputs, planner)
    if plan.verdict is Verdict.FIT:
        wanted = inputs.changed(max_model_len=inputs.context_max)
    goal = "" if wanted is inputs else f"MAX_MODEL_LEN={inputs.context_max} with "
    target = plan if wanted is inputs else planner(wanted)
    found = []
    for change, other, cost in _changes(target, wanted, cards, planner, full=wanted is not inputs):
        tried = planner(other)
        better = (tried.largest_context or 0) > (target.largest_context or 0)
        free = other.block_size != wanted.block_size and (tried.pool_tokens or 0) > (target.pool_tokens or 0)
        if ORDER[tried.verdict] < ORDER[target.verdict] or (free and (better or tried.verdict is target.verdict)):
            found.append(
                Suggestion(
                    change=goal + change,
                    verdict=tried.verdict,
                    cost=cost,
                    context=other.max_model_len,
                    largest_context=tried.largest_context,
                )
            )
    return tuple(found)


def _free_gain(plan: FitPlan, inputs: VllmInputs, planner: Planner) -> tuple[Suggestion, ...]:
    """Return the change that costs nothing and enlarges the pool of a plan that fits already, if there is one."""
    for change, other, cost in _even_blocks(inputs):
        tried = planner(other)
        if (tried.pool_tokens or 0) > (plan.pool_tokens or 0):
            words = f"{cost}: {tried.pool_tokens:,} tokens in the pool instead of {plan.pool_tokens:,}"
            return (
                Suggestion(
                    change=change,
                    verdict=tried.verdict,
                    cost=words,
                    context=other.max_model_len,
                    largest_context=tried.largest_context,
                ),
            )
    return ()


def _even_blocks(inputs: VllmInputs) -> Iterator[tuple[str, VllmInputs, str]]:
    if inputs.block_size is None and inputs.drafter.window and VALUE_BYTES.get(inputs.kv_cache_dtype) == 1:
        cost = "blocks that the drafter's attention kernels divide evenly, so that its window wastes no pages"
        yield f"ENGINE_ARGS='--block-size {EVEN_BLOCK}'", inputs.changed(block_size=EVEN_BLOCK), cost


def _changes(
    plan: FitPlan, inputs: VllmInputs, cards: tuple[Card, ...], planner: Planner, *, full: bool
) -> Iterator[tuple[str, VllmInputs, str]]:
    used = sorted(cards, key=lambda card: -card.free_bytes)[: inputs.tensor_parallel]
    least = min((card.free_bytes / card.total_bytes for card in used), default=0.0)
    if inputs.gpu_memory_utilization > least:
        yield from _less_utilization(inputs, cards, least, planner, full=full)
        return
    yield from _even_blocks(inputs)
    if not full:
        yield from _less_context(plan, inputs)
    if inputs.max_num_seqs > 1:
        cost = f"one request at a time instead of {inputs.max_num_seqs}"
        yield "MAX_NUM_SEQS=1", inputs.changed(max_num_seqs=1), cost
    yield from _more_utilization(inputs, used, least, planner)
    if inputs.batched_tokens > SMALLER_BATCH:
        cost = "long prompts are read in smaller steps, so prefill is slower"
        yield f"MAX_NUM_BATCHED_TOKENS={SMALLER_BATCH}", inputs.changed(batched_tokens=SMALLER_BATCH), cost
    if VALUE_BYTES.get(inputs.kv_cache_dtype) == 2:
        yield from _smaller_cache(inputs, used)
    if inputs.drafter.depth:
        yield "SPEC_N=0", inputs.changed(drafter=DrafterShape()), "no drafting: decode at the speed of the target alone"
    yield from _more_cards(inputs, cards)


def _less_utilization(
    inputs: VllmInputs, cards: tuple[Card, ...], least: float, planner: Planner, *, full: bool
) -> Iterator[tuple[str, VllmInputs, str]]:
    """Yield the share that is free, and where that alone is too little, each further change on top of it."""
    lower = math.floor(least * 100) / 100
    if lower <= 0:
        return
    words, other = f"GPU_MEMORY_UTILIZATION={lower:.2f}", inputs.changed(gpu_memory_utilization=lower)
    yield words, other, "what other programs hold stays theirs; the pool shrinks"
    plan = planner(other)
    if plan.verdict is Verdict.NO:
        for change, further, cost in _changes(plan, other, cards, planner, full=full):
            yield f"{words} {change}", further, cost


def _less_context(plan: FitPlan, inputs: VllmInputs) -> Iterator[tuple[str, VllmInputs, str]]:
    ranges = plan.largest_range
    if ranges is None:
        return
    for largest, words in ((ranges.low, "even by the worst estimate"), (ranges.best, "by the best estimate")):
        if LEAST_CONTEXT <= largest < inputs.max_model_len:
            cost = f"{inputs.max_model_len - largest:,} tokens less context; fits {words}"
            yield f"MAX_MODEL_LEN={largest}", inputs.changed(max_model_len=largest), cost


def _more_utilization(
    inputs: VllmInputs, used: list[Card], least: float, planner: Planner
) -> Iterator[tuple[str, VllmInputs, str]]:
    most = min(UTILIZATION_MOST, math.floor(least * 100) / 100)
    steps = round((most - inputs.gpu_memory_utilization) / UTILIZATION_STEP)
    for step in range(1, steps + 1):
        value = round(inputs.gpu_memory_utilization + step * UTILIZATION_STEP, 2)
        other = inputs.changed(gpu_memory_utilization=value)
        if planner(other).verdict in (Verdict.FIT, Verdict.TIGHT):
            left = min(card.free_bytes - value * card.total_bytes for card in used)
            cost = f"{format_gib(max(0, round(left)))} a GPU left for long prompts and other programs"
            yield f"GPU_MEMORY_UTILIZATION={value:.2f}", other, cost
            return


def _smaller_cache(inputs: VllmInputs, used: list[Card]) -> Iterator[tuple[str, VllmInputs, str]]:
    reads = flash_attention_reads_fp8(used[0].compute if used else None)
    cost = (
        "half the bytes a cached value; FlashAttention reads it on this GPU"
        if reads
        else "half the bytes a cached value; attention runs on FlashInfer, which decodes slower than FlashAttention"
    )
    named = bool(inputs.attention_backend) and not reads
    backend = "FLASHINFER" if named else inputs.attention_backend
    other = inputs.changed(kv_cache_dtype="fp8_e4m3", attention_backend=backend)
    yield "KV_CACHE_DTYPE=fp8_e4m3" + (" ATTN_BACKEND=FLASHINFER" if named else ""), other, cost


def _more_cards(inputs: VllmInputs, cards: tuple[Card, ...]) -> Iterator[tuple[str, VllmInputs, str]]:
    allowed = inputs.architecture.tensor_parallel or (1, 2, 4, 8)
    for count in sorted(allowed):
        if inputs.tensor_parallel < count <= len(cards):
            cost = f"{count} GPUs of this rig instead of {inputs.tensor_parallel}"
            yield f"TP={count}", inputs.changed(tensor_parallel=count), cost


def missing_cards(
    plan: FitPlan,
    inputs: VllmInputs,
    cards: tuple[Card, ...],
    planner_on: Callable[[VllmInputs, tuple[Card, ...]], FitPlan],
) -> tuple[Suggestion, ...]:
    """Return the least number of further GPUs of the rig's own kind that would make it fit, if any would."""
    if plan.verdict is not Verdict.NO or not cards:
        return ()
    allowed = inputs.architecture.tensor_parallel or (1, 2, 4, 8)
    for count in sorted(count for count in allowed if count > len(cards)):
        rig = tuple(cards[index % len(cards)] for index in range(count))
        tried = planner_on(inputs.changed(tensor_parallel=count), rig)
        if tried.verdict in (Verdict.FIT, Verdict.TIGHT):
            memory = sum(card.total_bytes for card in rig) / GIB
            return (
                Suggestion(
                    change=f"{count}x {cards[0].name}",
                    verdict=tried.verdict,
                    cost=f"{count - len(cards)} more GPU(s), {memory:.0f} GiB in all",
                    context=inputs.max_model_len,
                    largest_context=tried.largest_context,
                ),
            )
    return ()
