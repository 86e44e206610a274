"""Which constants of vLLM's allocator hold for a configuration: by version, recurrent prefill, attention back end, GPU.

Knows the catalogue's `kv_geometries`; a version or GPU that they do not cover is unknown, never the nearest one.
"""

from dataclasses import replace

from redline.catalog.memory import KvGeometry
from redline.catalog.types import Catalog
from redline.catalog.versions import in_versions
from redline.plan.geometry import AllocatorRules
from redline.plan.inputs import VALUE_BYTES, UnknownPlanError, VllmInputs
from redline.plan.notes import flash_attention_reads_fp8


def allocator_rules(
    catalog: Catalog,
    engine_version: str,
    gdn_prefill: str | None,
    compute: str | None,
    *,
    attention: str | None = None,
    recurrent: bool = True,
) -> tuple[AllocatorRules, str]:
    """Return the allocator's constants and the id of the record they come from.

    Args:
        gdn_prefill: back end of recurrent prefill; None is the engine's own choice on that GPU.
        compute: CUDA compute capability, `8.6`; None when it is not known.
        attention: name of the attention back end, as `attention_backend_of` gives it.

    Raises:
        UnknownPlanError: no record covers this version, back end and GPU.
    """
    version = engine_version.removeprefix("v")
    known = [item for item in catalog.kv_geometries.values() if in_versions(version, item.versions)]
    if not known:
        ranges = ", ".join(sorted({item.versions for item in catalog.kv_geometries.values()}))
        raise UnknownPlanError(f"vLLM {engine_version} is not known here (known: {ranges})")
    for item in known:
        chosen = gdn_prefill == item.gdn_prefill if gdn_prefill else (compute is None or compute in item.chosen_on)
        if chosen and (compute is None or compute in item.compute or not recurrent):
            return _rules(item, attention), item.id
    raise UnknownPlanError(
        f"the block rounding of vLLM {engine_version} with {gdn_prefill or 'its own'} recurrent prefill "
        f"on compute capability {compute or 'unknown'} is not known here"
    )


def _rules(item: KvGeometry, attention: str | None) -> AllocatorRules:
    return AllocatorRules(
        rounding_tokens=item.rounding_tokens,
        rounding_uncached_tokens=item.rounding_uncached_tokens,
        default_block_tokens=item.default_block_tokens,
        state_blocks=item.state_blocks,
        state_blocks_uncached=item.state_blocks_uncached,
        checkpoint_blocks=item.checkpoint_blocks,
        concurrent_batches=item.concurrent_batches,
        retained_tokens=item.retained_tokens,
        null_blocks=item.null_blocks,
        sliding_block_sizes=item.sliding_blocks.get(attention or "", ()),
    )


def with_block_size(rules: AllocatorRules, block_size: int | None) -> AllocatorRules:
    """Return the constants under the engine's --block-size; None is its own choice."""
    return replace(rules, default_block_tokens=block_size) if block_size else rules


def attention_backend_of(inputs: VllmInputs, compute: str | None) -> str:
    """Return the attention back end: as asked for, else FLASH_ATTN unless the cache is fp8 and it cannot read that."""
    if inputs.attention_backend:
        return inputs.attention_backend.upper()
    fp8 = VALUE_BYTES.get(inputs.kv_cache_dtype) == 1
    return "FLASHINFER" if fp8 and not flash_attention_reads_fp8(compute) else "FLASH_ATTN"


def rules_of(catalog: Catalog, inputs: VllmInputs, compute: str | None) -> tuple[AllocatorRules, str]:
    """Return the allocator's constants for these inputs on a GPU of this compute capability, and the record's id.

    Raises:
        UnknownPlanError: see `allocator_rules`.
    """
    rules, rules_id = allocator_rules(
        catalog,
        inputs.engine_version,
        inputs.gdn_prefill,
        compute,
        attention=attention_backend_of(inputs, compute),
        recurrent=inputs.architecture.linear is not None,
    )
    return with_block_size(rules, inputs.block_size), rules_id
