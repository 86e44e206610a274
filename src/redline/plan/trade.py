"""The trade between cache type, attention kernels and context, in one sentence for one configuration on one GPU.

Knows which kernels read which cache (plan.notes) and how a configuration plans again; knows no slug.
"""

from collections.abc import Callable

from redline.catalog.types import DrafterKind
from redline.plan.inputs import VALUE_BYTES, VllmInputs
from redline.plan.notes import flash_attention_reads_fp8
from redline.plan.types import FitPlan

Planner = Callable[[VllmInputs], FitPlan]


def trade_sentence(
    plan: FitPlan, inputs: VllmInputs, compute: str | None, planner: Planner, speeds: tuple[str | None, str | None]
) -> str:
    """Return the sentence, or an empty string where no pool was planned.

    Args:
        speeds: known decode speed with a 16-bit cache and with an 8-bit cache, as words; None where none is known.
    """
    value_bytes = VALUE_BYTES.get(inputs.kv_cache_dtype)
    if value_bytes is None or plan.largest_context is None or compute is None:
        return ""
    wide, narrow = (
        (plan, planner(inputs.changed(kv_cache_dtype="fp8_e4m3", attention_backend=None)))
        if value_bytes == 2
        else (planner(inputs.changed(kv_cache_dtype="bfloat16")), plan)
    )
    if wide.largest_context is None or narrow.largest_context is None:
        return ""
    wide_speed, narrow_speed = (f" ({speed})" if speed else "" for speed in speeds)
    drafts = inputs.drafter.depth and inputs.drafter.kind is DrafterKind.DFLASH2
    if flash_attention_reads_fp8(compute):
        same = "; super and ultra are one tier here" if drafts else ""
        return (
            f"FlashAttention reads an fp8 cache on sm_{compute.replace('.', '')}, so fp8 costs no kernel: "
            f"{_words(narrow)} instead of {_words(wide)} in bfloat16{same}."
        )
    why = "; a block drafter wants FlashAttention" if drafts else ""
    return (
        f"sm_{compute.replace('.', '')} runs FlashAttention 2, which cannot read an fp8 cache{why}: bfloat16 on "
        f"FlashAttention holds {_words(wide)}{wide_speed}, fp8 on FlashInfer {_words(narrow)}{narrow_speed}."
    )


def _words(plan: FitPlan) -> str:
    largest = plan.largest_context or 0
    if largest and largest == plan.context_max:
        return f"the full {largest:,} tokens"
    return f"{largest:,} tokens" if largest else "nothing"
