"""Whether a GGUF tier fits: in host memory, or on GPUs. Knows tiers and rigs; the bytes come from plan.gguf."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog, DrafterKind
from redline.plan.adapter import tier_cards
from redline.plan.cards import Card, describe_cards
from redline.plan.gguf import (
    GgufInputs,
    cache_bytes,
    device_terms,
    exact,
    host_compute_bytes,
    kv_bytes_per_token,
    measured,
    state_bytes,
    unknown_reason,
)
from redline.plan.types import DevicePlan, FitPlan, Suggestion, Term, Verdict
from redline.rig.types import Rig
from redline.units import MIB, format_gib

TIGHT_SHARE: Final = 0.9
# Weights that llama.cpp copies into another order for AVX2 or NEON (ggml-cpu/repack.cpp); the mapped file stays too.
REPACKED: Final = frozenset({"Q4_0", "IQ4_NL"})
LEAST_CONTEXT: Final = 256


def plan_gguf(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> FitPlan:
    """Return the plan of a llama.cpp tier: on GPUs where its topology has some, else in host memory."""
    gpus = catalog.topologies[tier.key.topology].gpus
    if not gpus:
        return plan_on_host(catalog, tier, rig)
    return plan_on_gpus(catalog, tier, tier_cards(catalog, tier, rig), gpus)


def plan_on_host(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> FitPlan:
    """Return the plan of a llama.cpp tier in host memory."""
    inputs = gguf_inputs(catalog, tier)
    if refusal := _unplanned(inputs):
        return _no_plan(tier, *refusal)
    a, context_max = inputs.architecture, catalog.models[tier.key.model].context_max
    artifact = catalog.artifacts[tier.artifact.value]
    prompts = (tier.prompt_cache_mib.value or 0) * MIB
    cache = cache_bytes(inputs, a.full_attention_layers)
    copied = artifact.size_bytes if artifact.quant.upper() in REPACKED else 0
    value_bytes = kv_bytes_per_token(1, 1, 1, inputs.cache_type) / 2
    basis = (
        f"{a.full_attention_layers} layers x {a.kv_heads} heads x {a.head_dim} x 2 x {value_bytes:g} bytes "
        f"x {inputs.context} tokens"
    )
    terms = [
        exact("weights", artifact.size_bytes, "size of the file"),
        *(
            [_up_to("repacked", copied, copied, f"{artifact.quant} in the order of the processor's instructions")]
            if copied
            else []
        ),
        exact("kv cache", cache, basis),
        *(
            [exact("recurrent state", state, "f32 state of the recurrent layers")]
            if (state := state_bytes(inputs))
            else []
        ),
        exact("compute", host_compute_bytes(a, inputs.batch, inputs.context), "activations and mask of one batch"),
        *_draft_terms(catalog, tier, inputs),
        measured(catalog, "host", "process"),
        *([_up_to("prompt cache", prompts, prompts, "its limit")] if prompts else []),
    ]
    device = DevicePlan(
        device="host",
        total_bytes=rig.memory_total_bytes,
        available_bytes=rig.memory_available_bytes,
        terms=tuple(terms),
    )
    verdict, words = _judge(device)
    room = rig.memory_available_bytes - (device.need_bytes - cache)
    per_token = kv_bytes_per_token(a.full_attention_layers, a.kv_heads, a.head_dim, inputs.cache_type) * inputs.requests
    largest = max(0, min(context_max, int(room / per_token)))
    return FitPlan(
        slug=tier.slug,
        verdict=verdict,
        reasons=(words,),
        devices=(replace(device, verdict=verdict, reasons=(words,)),),
        context=inputs.context,
        largest_context=largest,
        context_max=context_max,
        suggestions=_suggest(verdict, largest),
    )


def _draft_terms(catalog: Catalog, tier: ResolvedTier, inputs: GgufInputs) -> list[Term]:
    """Return a block drafter's terms in host memory: its file, and the cache of its window and one batch."""
    drafter = catalog.drafters[tier.drafter.value]
    fact = drafter.checkpoint
    if not drafter.artifact or not tier.spec_n.value or fact is None:
        return []
    file = catalog.artifacts[drafter.artifact].size_bytes
    tokens = min(inputs.context, (fact.window or inputs.context) + inputs.batch) * inputs.requests
    per_token = kv_bytes_per_token(fact.layers or 0, fact.kv_heads or 0, fact.head_dim or 0, "f16")
    # Its Q4_0 matrices are copied into the processor's order, as the target's are.
    return [
        _up_to("drafter", file, 2 * file, "its file, and a copy of what is put into another order"),
        exact("drafter cache", round(per_token * tokens), f"{fact.layers} layers x {tokens} tokens, f16"),
    ]


def plan_on_gpus(catalog: Catalog, tier: ResolvedTier, cards: Sequence[Card], gpus: int) -> FitPlan:
    """Return the plan of a llama.cpp tier that is spread over GPUs by layers."""
    inputs = gguf_inputs(catalog, tier)
    if refusal := _unplanned(inputs):
        return _no_plan(tier, *refusal)
    if not inputs.file_bytes:
        return _no_plan(tier, Verdict.UNKNOWN, "the size of its weights is not declared")
    if len(cards) < gpus:
        return _no_plan(
            tier, Verdict.NO, f"it is spread over {gpus} GPU(s) and this rig has {describe_cards(tuple(cards))}"
        )
    context_max = catalog.models[tier.key.model].context_max
    if inputs.context > context_max:
        words = f"a context of {inputs.context:,} is more than the architecture's {context_max:,}"
        return _no_plan(tier, Verdict.NO, words)
    chosen = sorted(cards, key=lambda card: -card.free_bytes)[:gpus]
    devices = _devices(catalog, inputs, chosen)
    verdicts = [device.verdict for device in devices]
    verdict = next((v for v in (Verdict.NO, Verdict.TIGHT) if v in verdicts), Verdict.FIT)
    largest = _largest(catalog, inputs, chosen, context_max)
    return FitPlan(
        slug=tier.slug,
        verdict=verdict,
        reasons=tuple(dict.fromkeys(reason for device in devices for reason in device.reasons)),
        devices=devices,
        context=inputs.context,
        largest_context=largest,
        context_max=context_max,
        suggestions=_suggest(verdict, largest),
        notes=(f"layers are spread {' : '.join(f'{share:.2f}' for share in inputs.split)}",) if inputs.split else (),
    )


def gguf_inputs(catalog: Catalog, tier: ResolvedTier) -> GgufInputs:
    """Return what a llama.cpp tier is planned from."""
    model = catalog.models[tier.key.model]
    drafter = catalog.drafters[tier.drafter.value]
    projector = catalog.artifacts.get(tier.projector.value or "")
    drafting = drafter.kind is DrafterKind.MTP and tier.spec_n.value > 0
    return GgufInputs(
        architecture=model.architecture,
        file_bytes=catalog.artifacts[tier.artifact.value].size_bytes,
        context=tier.max_model_len.value,
        cache_type=tier.kv_cache_dtype.value,
        requests=tier.max_num_seqs.value,
        batch=tier.batch_tokens.value or 512,
        draft_layers=model.architecture.mtp_layers if drafting else 0,
        projector_bytes=projector.size_bytes if projector else 0,
        split=_split(tier.tensor_split.value),
    )


def _devices(catalog: Catalog, inputs: GgufInputs, cards: Sequence[Card]) -> tuple[DevicePlan, ...]:
    plans = []
    for card, terms in zip(cards, device_terms(catalog, inputs, len(cards)), strict=True):
        device = DevicePlan(
            device=card.name,
            total_bytes=card.total_bytes,
            available_bytes=card.free_bytes,
            free_bytes=card.free_bytes,
            terms=terms,
        )
        verdict = (
            Verdict.NO
            if device.need_bytes > card.free_bytes
            else Verdict.TIGHT
            if device.need_high_bytes > card.free_bytes
            else Verdict.FIT
        )
        words = (
            f"needs {format_gib(device.need_bytes)} ({format_gib(device.need_low_bytes)} to "
            f"{format_gib(device.need_high_bytes)}) of {format_gib(card.free_bytes)} free"
        )
        plans.append(replace(device, verdict=verdict, reasons=(words,)))
    return tuple(plans)


def _largest(catalog: Catalog, inputs: GgufInputs, cards: Sequence[Card], ceiling: int) -> int:
    low, high = 0, ceiling
    while low < high:
        middle = (low + high + 1) // 2
        devices = _devices(catalog, replace(inputs, context=middle), cards)
        fits = all(device.need_bytes <= card.free_bytes for device, card in zip(devices, cards, strict=True))
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


def _unplanned(inputs: GgufInputs) -> tuple[Verdict, str] | None:
    """Return why there is nothing to plan: values that nothing can have, or a shape without a formula."""
    if min(inputs.context, inputs.requests, inputs.batch) < 1:
        return Verdict.NO, "context, requests and batch must be positive"
    reason = unknown_reason(inputs.architecture, inputs.cache_type)
    return (Verdict.UNKNOWN, reason) if reason else None


def _split(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        return ()


def _no_plan(tier: ResolvedTier, verdict: Verdict, reason: str) -> FitPlan:
    return FitPlan(
        slug=tier.slug,
        verdict=verdict,
        reasons=(reason,),
        devices=(),
        context=tier.max_model_len.value,
        largest_context=None,
    )


def _up_to(name: str, best: int, high: int, basis: str) -> Term:
    return Term(name=name, best_bytes=best, low_bytes=0, high_bytes=high, basis=basis)


def _judge(device: DevicePlan) -> tuple[Verdict, str]:
    words = f"needs {format_gib(device.need_bytes)} of {format_gib(device.available_bytes)} available"
    if device.need_bytes > device.available_bytes:
        return Verdict.NO, words
    if device.need_high_bytes > device.available_bytes * TIGHT_SHARE:
        return Verdict.TIGHT, words
    return Verdict.FIT, words


def _suggest(verdict: Verdict, largest: int) -> tuple[Suggestion, ...]:
    if verdict is not Verdict.NO or largest < LEAST_CONTEXT:
        return ()
    return (
        Suggestion(
            change=f"MAX_MODEL_LEN={largest}",
            verdict=Verdict.TIGHT,
            cost=f"a context of {largest} tokens and no more",
            context=largest,
            largest_context=largest,
        ),
    )
