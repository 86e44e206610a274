"""A boot's own report back into blocks and overhead, and how far off its prediction was. Knows no log format."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from redline.catalog.memory import Boot, BootDrafter
from redline.catalog.types import Catalog, DrafterKind
from redline.plan.boots import LOG_ROUNDING_GIB, loaded_bytes
from redline.plan.cards import Card, find_hardware
from redline.plan.geometry import (
    GeometryError,
    PoolGeometry,
    blocks_of_tokens,
    boots,
    pool_blocks,
    request_blocks,
)
from redline.plan.inputs import DrafterShape, UnknownPlanError, VllmInputs, geometry_of
from redline.plan.rules import rules_of
from redline.plan.types import BootFacts, FitPlan
from redline.plan.vllm import estimate_overhead, plan_vllm
from redline.units import GIB

MAX_GPUS: Final = 64  # a log may say anything
ROUNDING_BYTES: Final = round(LOG_ROUNDING_GIB * GIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackSolved:
    """What a boot log implies.

    `blocks` follows from its tokens, `blocks_low` and `blocks_high` from its bytes; `consistent` is whether they
    agree with each other and with vLLM's own grouping, None where the log has too little. `overhead_bytes` is what was
    neither weights nor cache; `predicted` is the plan of the same settings; `error` compares tokens, else bytes.
    """

    facts: BootFacts
    blocks: int | None
    blocks_low: int | None
    blocks_high: int | None
    need_blocks: int | None
    block_tokens: int | None
    consistent: bool | None
    overhead_bytes: int | None
    predicted: FitPlan
    predicted_available_bytes: int | None
    error: float | None
    reasons: tuple[str, ...]
    boot: Boot | None = None


def back_solve(catalog: Catalog, facts: BootFacts, inputs: VllmInputs, card: Card | None) -> BackSolved:
    """Return what a boot implies for inputs of the same settings. Never raises: what is missing is a reason."""
    cards = (card,) * max(1, min(inputs.tensor_parallel, MAX_GPUS)) if card else ()
    predicted = plan_vllm(catalog, inputs, cards)
    try:
        compute = card.compute if card else None
        rules, _ = rules_of(catalog, inputs, compute)
        geometry = geometry_of(inputs, rules)
    except (UnknownPlanError, GeometryError) as error:
        return _nothing(facts, predicted, str(error))
    context = facts.context or inputs.max_model_len
    if context < 1:
        return _nothing(facts, predicted, f"the log states a context of {context:,} tokens, which no engine serves")
    reasons = list(_block_reasons(facts, geometry))
    low = high = None
    if facts.available_bytes is not None:
        low = pool_blocks(geometry, facts.available_bytes - ROUNDING_BYTES)
        high = pool_blocks(geometry, facts.available_bytes + ROUNDING_BYTES - 1)
    tokens = facts.pool_tokens
    blocks = facts.blocks or (blocks_of_tokens(geometry, tokens, context) if tokens else None)
    need = request_blocks(geometry, context) + rules.null_blocks
    consistent = _consistent(facts, geometry, context, blocks, low, high, reasons)
    if blocks is None and tokens is None and low is not None:
        blocks = pool_blocks(geometry, facts.available_bytes or 0)
    overhead, available = _overhead(catalog, facts, inputs, card, geometry, blocks)
    return BackSolved(
        facts=facts,
        blocks=blocks,
        blocks_low=low,
        blocks_high=high,
        need_blocks=need,
        block_tokens=geometry.block_tokens,
        consistent=consistent,
        overhead_bytes=overhead,
        predicted=predicted,
        predicted_available_bytes=available,
        error=_error(predicted, facts, available),
        reasons=tuple(reasons),
        boot=_boot_record(facts, inputs, card) if consistent else None,
    )


def _nothing(facts: BootFacts, predicted: FitPlan, reason: str) -> BackSolved:
    return BackSolved(
        facts=facts,
        blocks=None,
        blocks_low=None,
        blocks_high=None,
        need_blocks=None,
        block_tokens=None,
        consistent=None,
        overhead_bytes=None,
        predicted=predicted,
        predicted_available_bytes=None,
        error=None,
        reasons=(reason,),
    )


def _block_reasons(facts: BootFacts, geometry: PoolGeometry) -> tuple[str, ...]:
    if facts.block_tokens and facts.block_tokens != geometry.block_tokens:
        return (
            (
                f"the log says {facts.block_tokens} tokens a block and the rules give {geometry.block_tokens}: "
                "another back end, state type or version than assumed"
            ),
        )
    return ()


def _consistent(
    facts: BootFacts,
    geometry: PoolGeometry,
    context: int,
    blocks: int | None,
    low: int | None,
    high: int | None,
    reasons: list[str],
) -> bool | None:
    if facts.refused and low is not None:
        agrees = not boots(geometry, high or low, context) or not boots(geometry, low, context)
        need = request_blocks(geometry, context) + geometry.rules.null_blocks
        words = f"the engine refused {context:,} tokens: it needs {need} blocks and had {low}"
        reasons.append(words if agrees else f"{words}, which would be enough: another allocator than vLLM's own")
        return agrees and not _block_reasons(facts, geometry)
    if facts.pool_tokens is None:
        return None
    if blocks is None:
        reasons.append(
            f"{facts.pool_tokens:,} tokens are no integer number of blocks: another allocator than vLLM's own"
        )
        return False
    if low is not None and high is not None and not low <= blocks <= high:
        reasons.append(
            f"its tokens are {blocks} blocks and its bytes {low} to {high}: two boots in one log, or a patch"
        )
        return False
    return not _block_reasons(facts, geometry)


def _overhead(
    catalog: Catalog,
    facts: BootFacts,
    inputs: VllmInputs,
    card: Card | None,
    geometry: PoolGeometry,
    blocks: int | None,
) -> tuple[int | None, int | None]:
    """Return overhead as the boot had it and available bytes as they would have been predicted."""
    if card is None:
        return None, None
    requested = round(inputs.gpu_memory_utilization * (facts.total_bytes or card.total_bytes))
    loaded = loaded_bytes(inputs)
    predicted = requested - loaded - estimate_overhead(catalog, inputs, card).best_bytes if loaded else None
    had = facts.available_bytes
    if had is None and blocks:
        had = round((blocks + 0.5) * geometry.pool_block_bytes)
    if had is None or not loaded:
        return None, predicted
    return requested - had - loaded, predicted


def _error(predicted: FitPlan, facts: BootFacts, available: int | None) -> float | None:
    if predicted.pool_tokens and facts.pool_tokens:
        return predicted.pool_tokens / facts.pool_tokens - 1
    if available is not None and facts.available_bytes:
        return available / facts.available_bytes - 1
    return None


def _boot_record(facts: BootFacts, inputs: VllmInputs, card: Card | None) -> Boot | None:
    """Return the boot as a record of the catalogue, for the user's own folder; its date and place are the user's."""
    if card is None or card.hardware is None or inputs.drafter.kind.value not in ("none", "mtp", "dflash2"):
        return None
    own = inputs.drafter
    gib = facts.available_bytes
    linear = inputs.architecture.linear
    return Boot(
        id="mine",
        model=inputs.model,
        hardware=card.hardware,
        gpus=inputs.tensor_parallel,
        engine="vllm",
        engine_version=inputs.engine_version,
        weights=inputs.weight_format,
        weights_bytes=inputs.weights.file_bytes or None,
        tensor_parallel=inputs.tensor_parallel,
        max_model_len=facts.context or inputs.max_model_len,
        max_num_seqs=inputs.max_num_seqs,
        batched_tokens=inputs.batched_tokens,
        kv_cache_dtype=inputs.kv_cache_dtype,
        drafter=_kind_word(own) if own.depth else "none",
        spec_n=own.depth,
        draft=_drafter_record(own) if own.depth and own.layers else None,
        state_dtype="bfloat16" if linear and linear.state_dtype == "bfloat16" else "float32",
        gdn_prefill="flashinfer" if inputs.gdn_prefill == "flashinfer" else "triton",
        date="",
        source="own log",
        gpu_memory_utilization=inputs.gpu_memory_utilization,
        graphs=inputs.graphs,
        vision=inputs.vision,
        available_gib=round(gib / GIB, 2) if gib is not None else None,
        pool_tokens=facts.pool_tokens,
        refused=facts.refused,
    )


def _kind_word(drafter: DrafterShape) -> Literal["mtp", "dflash2"]:
    return "dflash2" if drafter.kind is DrafterKind.DFLASH2 else "mtp"


def _drafter_record(drafter: DrafterShape) -> BootDrafter:
    return BootDrafter(
        layers=drafter.layers,
        kv_heads=drafter.heads,
        head_dim=drafter.width,
        window=drafter.window or 0,
        file_bytes=drafter.sharded_bytes + drafter.replicated_bytes,
        replicated_bytes=drafter.replicated_bytes,
    )


def inputs_of_facts(inputs: VllmInputs, facts: BootFacts) -> VllmInputs:
    """Return inputs with everything that the log states in place of the tier's own values."""
    stated = {
        "engine_version": facts.engine_version,
        "tensor_parallel": facts.tensor_parallel,
        "gpu_memory_utilization": facts.gpu_memory_utilization,
        "max_model_len": facts.context,
        "max_num_seqs": facts.max_num_seqs,
        "batched_tokens": facts.batched_tokens,
        "kv_cache_dtype": facts.kv_cache_dtype,
        "gdn_prefill": facts.gdn_prefill,
        "graphs": False if facts.eager else None,
    }
    changed = inputs.changed(**{name: value for name, value in stated.items() if value is not None})
    if facts.context and facts.context > changed.context_max:
        changed = changed.changed(context_max=facts.context)  # extended beyond the architecture; the log is the proof
    if facts.speculative_tokens is not None:
        changed = changed.changed(drafter=replace(changed.drafter, depth=facts.speculative_tokens))
    return changed


def card_of_facts(catalog: Catalog, facts: BootFacts) -> Card | None:
    """Return the GPU that a log speaks of, by its name or by its total memory; None when neither is there."""
    hardware = find_hardware(catalog, facts.gpu_name) if facts.gpu_name else None
    if hardware is None and facts.total_bytes:
        near = [h for h in catalog.hardware.values() if abs(h.torch_visible_bytes - facts.total_bytes) < 0.02 * GIB]
        hardware = near[0] if len(near) == 1 else None
    if hardware is None:
        return None
    total = facts.total_bytes or hardware.torch_visible_bytes
    return Card(
        name=hardware.title,
        compute=hardware.compute,
        total_bytes=total,
        free_bytes=facts.free_bytes or total,
        hardware=hardware.id,
        basis="the log",
    )
