"""Host memory of llama.cpp on the processor: weights, key-value cache, buffers.

Known: dense models with grouped-query attention. Not known, and so UNKNOWN: anything else.
"""

from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.plan.types import DevicePlan, FitPlan, Suggestion, Term, Verdict
from redline.rig.types import Rig
from redline.units import MIB, format_gib

DENSE_FAMILIES: Final = frozenset({"llama"})
# Bytes per cached value; quantised types hold blocks of 32 values with a 2-byte scale (ggml block_q8_0, block_q4_0).
CACHE_VALUE_BYTES: Final = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
# Resident size of the worker less weights and cache: 124 MiB on SmolLM2-135M at 8192 tokens, batch 512.
PROCESS_BYTES: Final = (90 * MIB, 130 * MIB, 260 * MIB)
TIGHT_SHARE: Final = 0.9


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, cache_type: str) -> float:
    """Return bytes that one token of context takes: a key and a value in every layer and head."""
    return layers * kv_heads * head_dim * 2 * CACHE_VALUE_BYTES[cache_type]


def plan_on_host(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> FitPlan:
    """Return the plan of a llama.cpp tier in host memory."""
    model = catalog.models[tier.key.model]
    artifact = catalog.artifacts[tier.artifact.value]
    architecture, context = model.architecture, tier.max_model_len.value
    cache_type = tier.kv_cache_dtype.value
    if architecture.family not in DENSE_FAMILIES or cache_type not in CACHE_VALUE_BYTES:
        reason = (
            f"no formula for a cache of type {cache_type!r}"
            if architecture.family in DENSE_FAMILIES
            else f"no formula for the architecture family {architecture.family!r}"
        )
        return FitPlan(
            slug=tier.slug,
            verdict=Verdict.UNKNOWN,
            reasons=(reason,),
            devices=(),
            context=context,
            largest_context=None,
        )
    per_token = kv_bytes_per_token(architecture.layers, architecture.kv_heads, architecture.head_dim, cache_type)
    per_token *= tier.max_num_seqs.value
    weights, cache = artifact.size_bytes, round(per_token * context)
    prompts = (tier.prompt_cache_mib.value or 0) * MIB
    low, best, high = PROCESS_BYTES
    terms = (
        Term(
            name="weights",
            best_bytes=weights,
            low_bytes=weights,
            high_bytes=weights,
            basis="size of the file",
        ),
        Term(
            name="kv cache",
            best_bytes=cache,
            low_bytes=cache,
            high_bytes=cache,
            basis=f"{architecture.layers} layers x {architecture.kv_heads} heads x {architecture.head_dim} x 2 "
            f"x {CACHE_VALUE_BYTES[cache_type]:g} bytes x {context} tokens",
        ),
        Term(name="process", best_bytes=best, low_bytes=low, high_bytes=high, basis="measured on this model"),
        Term(name="prompt cache", best_bytes=prompts, low_bytes=0, high_bytes=prompts, basis="its limit"),
    )
    device = DevicePlan(
        device="host",
        total_bytes=rig.memory_total_bytes,
        available_bytes=rig.memory_available_bytes,
        terms=terms,
    )
    room = rig.memory_available_bytes - (device.need_bytes - cache)
    largest = max(0, min(model.context_max, int(room / per_token)))
    verdict, reason = _judge(device)
    return FitPlan(
        slug=tier.slug,
        verdict=verdict,
        reasons=(reason,),
        devices=(device,),
        context=context,
        largest_context=largest,
        suggestions=_suggest(verdict, largest),
    )


def _judge(device: DevicePlan) -> tuple[Verdict, str]:
    words = f"needs {format_gib(device.need_bytes)} of {format_gib(device.available_bytes)} available"
    if device.need_bytes > device.available_bytes:
        return Verdict.NO, words
    if device.need_high_bytes > device.available_bytes * TIGHT_SHARE:
        return Verdict.TIGHT, words
    return Verdict.FIT, words


def _suggest(verdict: Verdict, largest: int) -> tuple[Suggestion, ...]:
    if verdict is not Verdict.NO or largest < 256:
        return ()
    return (
        Suggestion(
            change=f"MAX_MODEL_LEN={largest}",
            verdict=Verdict.TIGHT,
            cost=f"a context of {largest} tokens and no more",
        ),
    )
