"""What a plan says in words beyond its verdict: why a context does not fit, what the layout wastes, what it costs.

Knows geometry and the rules of attention kernels; knows no catalogue and no rig.
"""

from redline.plan.geometry import CacheKind, PoolGeometry, largest_context, request_blocks, table_blocks
from redline.plan.inputs import VALUE_BYTES, VllmInputs
from redline.units import format_gib


def flash_attention_reads_fp8(compute: str | None) -> bool:
    """Whether FLASH_ATTN can read an fp8 cache: FlashAttention 3 on sm_90 and 4 on sm_100 can, 2 cannot.

    Source: vLLM 0.33.0 v1/attention/backends/flash_attn.py; sm_86, sm_89 and sm_120 all run FlashAttention 2.
    """
    return bool(compute) and str(compute).split(".")[0] in ("9", "10")


def refusal_words(inputs: VllmInputs, geometry: PoolGeometry, blocks: int, available_bytes: int) -> str:
    """Say why the engine would refuse this context."""
    if blocks <= 0:
        return f"weights and overhead leave {format_gib(max(0, available_bytes))} a GPU for the cache: not one block"
    largest = largest_context(geometry, blocks, inputs.context_max)
    return f"{_need_words(geometry, inputs.max_model_len)}, and the pool has {blocks:,}: {largest:,} is the longest"


def notes_of(inputs: VllmInputs, geometry: PoolGeometry, blocks: int, compute: str | None) -> tuple[str, ...]:
    """Return what a reader should know of this plan, in sentences."""
    notes = []
    largest = largest_context(geometry, blocks, inputs.context_max)
    if inputs.max_model_len < inputs.context_max:
        if largest < inputs.context_max:
            notes.append(
                f"the full {inputs.context_max:,} does not fit: {_need_words(geometry, inputs.context_max)}, "
                f"and the pool has {blocks:,} ({format_gib(blocks * geometry.pool_block_bytes)})"
            )
        else:
            notes.append(f"the full {inputs.context_max:,} would fit too")
    if geometry.padding_share > 0.01:
        tables = sum(group.count for group in geometry.groups)
        notes.append(
            f"cache layers are grouped by {geometry.group_layers} into {tables} tables: "
            f"{geometry.padding_share:.0%} of the attention cache is padding"
        )
    for group in geometry.groups:
        if group.kind is CacheKind.SLIDING and group.block_tokens < geometry.block_tokens:
            count = table_blocks(geometry, group, inputs.max_model_len)
            notes.append(
                f"{group.name} layers take blocks of {group.block_tokens} tokens here, each padded to a whole page: "
                f"{count} blocks for one window, {format_gib(count * geometry.pool_block_bytes)} a GPU"
            )
    fp8 = VALUE_BYTES.get(inputs.kv_cache_dtype) == 1
    if fp8 and inputs.drafter.depth and not flash_attention_reads_fp8(compute):
        notes.append("with an fp8 cache FlashInfer verifies drafts: CUDA graphs are PIECEWISE there, and slower")
    return tuple(notes)


def _need_words(geometry: PoolGeometry, context: int) -> str:
    need = request_blocks(geometry, context)
    null = geometry.rules.null_blocks
    kept = f" and {null} kept back" if null else ""
    size = format_gib((need + null) * geometry.pool_block_bytes)
    return f"one request of {context:,} needs {need:,} blocks{kept} ({size} a GPU)"
