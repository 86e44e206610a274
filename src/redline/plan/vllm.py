"""Whether a configuration of vLLM fits GPUs: terms, pool, largest context, verdict. Knows no slug and no process.

The engine takes gpu_memory_utilization x total on each GPU, loads weights, measures what a full batch takes, and gives
the rest to the cache pool; the GPU with the fewest blocks decides (vLLM 0.33.0 v1/worker/gpu_worker.py
determine_available_memory, v1/core/kv_cache_planning.py get_kv_cache_configs).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redline.catalog.types import Catalog, DrafterKind
from redline.plan.boots import calibrate, conditions_of, loaded_bytes
from redline.plan.cards import Card, describe_cards
from redline.plan.geometry import (
    GeometryError,
    PoolGeometry,
    boots,
    concurrency,
    largest_context,
    pool_blocks,
    pool_tokens,
    request_blocks,
)
from redline.plan.inputs import UnknownPlanError, VllmInputs, check_split, geometry_of
from redline.plan.notes import notes_of, refusal_words
from redline.plan.overhead import OverheadEstimate
from redline.plan.rules import rules_of
from redline.plan.step_time import step_note
from redline.plan.types import DevicePlan, FitPlan, Range, Term, Verdict
from redline.units import GIB, format_gib

# Overheads were fitted on one shape; on another the band is widened by these factors instead of pretending.
OTHER_SHAPE: Final = (0.4, 1.8)
MIXED: Final = "GPUs of different architectures: the engine compiles for one (club-3090#762)"


@dataclass(frozen=True, slots=True)
class _Shares:
    """What one card can give to the pool, in bytes, and the terms before it."""

    card: Card
    requested: int
    best: int
    low: int
    high: int
    terms: tuple[Term, ...]


def plan_vllm(catalog: Catalog, inputs: VllmInputs, cards: Sequence[Card]) -> FitPlan:
    """Return the plan of one configuration, without suggestions. Never raises: what is not known is a verdict."""
    try:
        return _plan(catalog, inputs, cards)
    except (UnknownPlanError, GeometryError) as error:
        return unknown_plan(inputs, str(error))


def unknown_plan(inputs: VllmInputs, *reasons: str) -> FitPlan:
    """Return a plan that only says why there is none."""
    return FitPlan(
        slug=inputs.name,
        verdict=Verdict.UNKNOWN,
        reasons=reasons,
        devices=(),
        context=inputs.max_model_len,
        largest_context=None,
        context_max=inputs.context_max,
    )


def _plan(catalog: Catalog, inputs: VllmInputs, cards: Sequence[Card]) -> FitPlan:
    if absurd := _absurd(inputs):
        return _refused(inputs, absurd)
    if inputs.pipeline_parallel > 1:
        raise UnknownPlanError(
            "layers in groups of GPUs (pipeline parallel) are not modelled; only layers shared by all are"
        )
    check_split(inputs.architecture, inputs.tensor_parallel)
    if len(cards) < inputs.tensor_parallel:
        have = describe_cards(tuple(cards))
        return _refused(inputs, f"it is split over {inputs.tensor_parallel} GPU(s) and this rig has {have}")
    chosen = sorted(cards, key=lambda card: -card.free_bytes)[: inputs.tensor_parallel]
    compute = min((card.compute for card in chosen), key=lambda value: value or "")
    rules, rules_id = rules_of(catalog, inputs, compute)
    geometry = geometry_of(inputs, rules)
    if not inputs.weights.sharded:
        return _without_weights(catalog, inputs, chosen, geometry, rules_id)
    shares = [_share(catalog, inputs, card) for card in chosen]
    blocks = Range(
        low=min(pool_blocks(geometry, share.low) for share in shares),
        best=min(pool_blocks(geometry, share.best) for share in shares),
        high=min(pool_blocks(geometry, share.high) for share in shares),
    )
    devices = tuple(_device(catalog, inputs, geometry, blocks, share) for share in shares)
    mixed = (MIXED,) if len({card.compute for card in chosen}) > 1 else ()
    verdict = _worst([device.verdict or Verdict.FIT for device in devices], mixed=bool(mixed))
    context = inputs.max_model_len
    return FitPlan(
        slug=inputs.name,
        verdict=Verdict.UNKNOWN if inputs.patched_allocator else verdict,
        reasons=(*_patched_reason(inputs, verdict), *dict.fromkeys(r for d in devices for r in d.reasons), *mixed),
        devices=devices,
        context=context,
        largest_context=largest_context(geometry, blocks.best, inputs.context_max),
        pool_blocks=blocks.best,
        pool_tokens=pool_tokens(geometry, blocks.best, context),
        context_max=inputs.context_max,
        largest_range=Range(
            low=largest_context(geometry, blocks.low, inputs.context_max),
            best=largest_context(geometry, blocks.best, inputs.context_max),
            high=largest_context(geometry, blocks.high, inputs.context_max),
        ),
        pool_range_tokens=Range(
            low=pool_tokens(geometry, blocks.low, context),
            best=pool_tokens(geometry, blocks.best, context),
            high=pool_tokens(geometry, blocks.high, context),
        ),
        need_blocks=request_blocks(geometry, context) + rules.null_blocks,
        block_tokens=geometry.block_tokens,
        pool_block_bytes=geometry.pool_block_bytes,
        concurrency=concurrency(geometry, blocks.best, context),
        notes=(
            *notes_of(inputs, geometry, blocks.best, chosen[0].compute),
            *step_note(catalog, inputs, chosen[0].hardware),
        ),
        rules=rules_id,
        boots=_boots_behind(catalog, inputs, chosen[0]),
    )


def _absurd(inputs: VllmInputs) -> str | None:
    if not 0 < inputs.gpu_memory_utilization <= 1:
        return f"gpu_memory_utilization {inputs.gpu_memory_utilization:g} is not between 0 and 1"
    if inputs.max_model_len < 1 or inputs.batched_tokens < 1 or inputs.max_num_seqs < 1 or inputs.drafter.depth < 0:
        return "context, batched tokens, requests and depth must be positive"
    if inputs.max_model_len > inputs.context_max:
        return f"a context of {inputs.max_model_len:,} is more than the architecture's {inputs.context_max:,}"
    return None


def _refused(inputs: VllmInputs, reason: str) -> FitPlan:
    return FitPlan(
        slug=inputs.name,
        verdict=Verdict.NO,
        reasons=(reason,),
        devices=(),
        context=inputs.max_model_len,
        largest_context=None,
        context_max=inputs.context_max,
    )


def _patched_reason(inputs: VllmInputs, verdict: Verdict) -> tuple[str, ...]:
    if not inputs.patched_allocator:
        return ()
    words = {Verdict.NO: "it does not fit", Verdict.TIGHT: "it fits tightly"}.get(verdict, "it fits")
    return (
        (
            f"its published figure rests on {inputs.patched_allocator}, which plans here do not model; "
            f"with vLLM's own cache groups {words}"
        ),
    )


def _share(catalog: Catalog, inputs: VllmInputs, card: Card) -> _Shares:
    requested = math.ceil(inputs.gpu_memory_utilization * card.total_bytes)
    overhead = estimate_overhead(catalog, inputs, card)
    loaded = loaded_bytes(inputs)
    return _Shares(
        card=card,
        requested=requested,
        best=requested - loaded - overhead.best_bytes,
        low=requested - loaded - overhead.high_bytes,
        high=requested - loaded - overhead.low_bytes,
        terms=(*_weight_terms(inputs), *_overhead_terms(overhead)),
    )


def estimate_overhead(catalog: Catalog, inputs: VllmInputs, card: Card) -> OverheadEstimate:
    """Return memory outside weights and cache on one GPU; wider on a shape that no boot is known of."""
    found = calibrate(catalog).predict(conditions_of(inputs, card.compute or "unknown"))
    if any(boot.model == inputs.model for boot in catalog.boots.values()):
        return found
    low, high = OTHER_SHAPE
    return OverheadEstimate(
        best_bytes=found.best_bytes,
        low_bytes=round(found.low_bytes * low),
        high_bytes=round(found.high_bytes * high),
        parts=found.parts,
    )


def _weight_terms(inputs: VllmInputs) -> list[Term]:
    tp, drafter = inputs.tensor_parallel, inputs.drafter
    terms = [_exact("weights", inputs.weights.on_card(tp), f"{inputs.weights.basis}, over {tp} GPU(s)")]
    if drafter.depth and drafter.kind is DrafterKind.MTP:
        terms.append(_exact("drafter", inputs.weights.mtp_on_card(tp), "the model's built-in drafter"))
    elif drafter.depth and drafter.on_card(tp):
        basis = f"size of its files over {tp} GPU(s), {format_gib(drafter.replicated_bytes)} of it on each (codebooks)"
        terms.append(_exact("drafter", drafter.on_card(tp), basis))
    return terms


def _overhead_terms(overhead: OverheadEstimate) -> list[Term]:
    parts = ", ".join(f"{part.name} {part.best_bytes / GIB:+.2f}" for part in overhead.parts if part.best_bytes)
    count = len({boot for part in overhead.parts for boot in part.boots})
    return [
        Term(
            name="overhead",
            best_bytes=overhead.best_bytes,
            low_bytes=overhead.low_bytes,
            high_bytes=overhead.high_bytes,
            basis=f"fitted from {count} boots, GiB: {parts}",
        )
    ]


def _exact(name: str, size_bytes: int, basis: str) -> Term:
    return Term(name=name, best_bytes=size_bytes, low_bytes=size_bytes, high_bytes=size_bytes, basis=basis)


def _device(catalog: Catalog, inputs: VllmInputs, geometry: PoolGeometry, blocks: Range, share: _Shares) -> DevicePlan:
    need = request_blocks(geometry, inputs.max_model_len) + geometry.rules.null_blocks
    cache = need * geometry.pool_block_bytes
    verdict, reasons = _judge(catalog, inputs, geometry, blocks, share)
    basis = (
        f"{need:,} blocks of {geometry.pool_block_bytes / 2**20:.2f} MiB for one request of {inputs.max_model_len:,}"
    )
    return DevicePlan(
        device=share.card.name,
        total_bytes=share.card.total_bytes,
        available_bytes=share.requested,
        free_bytes=share.card.free_bytes,
        terms=(*share.terms, _exact("cache", cache, basis)),
        spare_bytes=max(0, share.best - cache),
        verdict=verdict,
        reasons=reasons,
    )


def _judge(
    catalog: Catalog, inputs: VllmInputs, geometry: PoolGeometry, blocks: Range, share: _Shares
) -> tuple[Verdict, tuple[str, ...]]:
    card, context = share.card, inputs.max_model_len
    if card.free_bytes < share.requested:
        return Verdict.NO, (
            (
                f"gpu_memory_utilization {inputs.gpu_memory_utilization:g} asks for {format_gib(share.requested)} of "
                f"{card.name} and {format_gib(card.free_bytes)} are free: the engine refuses to start"
            ),
        )
    own = pool_blocks(geometry, share.best)
    if not boots(geometry, own, context):
        return Verdict.NO, (refusal_words(inputs, geometry, own, share.best),)
    reasons = []
    if not boots(geometry, blocks.low, context):
        reasons.append(
            f"it fits by the best estimate, not by the worst: overhead may be "
            f"{format_gib(share.best - share.low)} more than fitted"
        )
    missing = _headroom_missing(catalog, inputs, card.free_bytes - share.requested)
    if missing:
        reasons.append(missing)
    return (Verdict.TIGHT if reasons else Verdict.FIT), tuple(reasons)


def _headroom_missing(catalog: Catalog, inputs: VllmInputs, left_bytes: int) -> str | None:
    rule = next((item for item in catalog.headrooms.values() if item.engine == "vllm"), None)
    if rule is None:
        return None
    extra = rule.extra_request_gib * (inputs.max_num_seqs - 1) if inputs.drafter.depth else 0.0
    wanted = round((rule.gib + extra) * GIB)
    if left_bytes >= wanted:
        return None
    return (
        f"{format_gib(left_bytes)} are left outside the budget; long prompts were seen to take up to "
        f"{format_gib(wanted)} there with {inputs.max_num_seqs} request(s) at once"
    )


def _worst(verdicts: Sequence[Verdict], *, mixed: bool) -> Verdict:
    for verdict in (Verdict.NO, Verdict.UNKNOWN, Verdict.TIGHT):
        if verdict in verdicts:
            return verdict
    return Verdict.TIGHT if mixed else Verdict.FIT


def _without_weights(
    catalog: Catalog, inputs: VllmInputs, cards: Sequence[Card], geometry: PoolGeometry, rules_id: str
) -> FitPlan:
    """Say what weights would have to weigh: the only honest answer where their size is not known."""
    need = request_blocks(geometry, inputs.max_model_len) + geometry.rules.null_blocks
    cache = need * geometry.pool_block_bytes
    tp = inputs.tensor_parallel
    drafter = inputs.drafter.on_card(tp) if inputs.drafter.depth else 0
    room = min(
        math.ceil(inputs.gpu_memory_utilization * card.total_bytes)
        - drafter
        - estimate_overhead(catalog, inputs, card).best_bytes
        - cache
        for card in cards
    )
    undeclared = " and of its drafter" if inputs.drafter.depth and not drafter else ""
    reasons = (
        f"the size of its weights{undeclared} is not declared",
        (
            f"with vLLM's own cache groups one request of {inputs.max_model_len:,} takes {need:,} blocks, "
            f"{format_gib(cache)} a GPU, which leaves room for weights of at most {max(0.0, room * tp / GIB):.1f} GiB"
        ),
    )
    patched = (
        (f"its published figure rests on {inputs.patched_allocator}, which plans here do not model",)
        if inputs.patched_allocator
        else ()
    )
    return FitPlan(
        slug=inputs.name,
        verdict=Verdict.UNKNOWN,
        reasons=(*reasons, *patched),
        devices=(),
        context=inputs.max_model_len,
        largest_context=None,
        context_max=inputs.context_max,
        need_blocks=need,
        block_tokens=geometry.block_tokens,
        pool_block_bytes=geometry.pool_block_bytes,
        rules=rules_id,
    )


def _boots_behind(catalog: Catalog, inputs: VllmInputs, card: Card) -> tuple[str, ...]:
    """Return the boots nearest to these inputs: same weights and drafter; else same drafter."""
    kind = inputs.drafter.kind.value if inputs.drafter.depth else "none"
    used = {boot for part in estimate_overhead(catalog, inputs, card).parts for boot in part.boots}
    same = [b for b in catalog.boots.values() if b.id in used and b.drafter == kind and b.model == inputs.model]
    near = [b.id for b in same if b.weights == inputs.weight_format and b.tensor_parallel == inputs.tensor_parallel]
    return tuple(near or [b.id for b in same])
