"""Settings of a plan by the names that tiers give them, for inputs that have no tier. Knows names and bounds."""

import difflib
from collections.abc import Iterable
from typing import Any, Final

from redline.catalog.types import DrafterKind
from redline.errors import UsageError
from redline.plan.inputs import DrafterShape, VllmInputs
from redline.settings import Sourced, parse_bool, parse_float, parse_int

_INTS: Final = {
    "TP": ("tensor_parallel", 1, 64),
    "MAX_MODEL_LEN": ("max_model_len", 1, 2**24),
    "MAX_NUM_SEQS": ("max_num_seqs", 1, 1024),
    "MAX_NUM_BATCHED_TOKENS": ("batched_tokens", 32, 2**20),
    "BLOCK_SIZE": ("block_size", 1, 2**16),
}
_WORDS: Final = {
    "KV_CACHE_DTYPE": "kv_cache_dtype",
    "ATTN_BACKEND": "attention_backend",
    "GDN_PREFILL_BACKEND": "gdn_prefill",
    "ENGINE_VERSION": "engine_version",
}
NAMES: Final = (*_INTS, "GPU_MEMORY_UTILIZATION", "PREFIX_CACHING", "SPEC_N", *_WORDS)


def apply_sets(inputs: VllmInputs, sets: Iterable[str]) -> VllmInputs:
    """Return inputs with `NAME=VALUE` settings applied.

    Raises:
        UsageError: a name that no plan has, or a value out of bounds.
    """
    for text in sets:
        name, equals, value = text.partition("=")
        name = name.strip().upper()
        if not equals or name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=3)
            raise UsageError(
                f"--set {text}: expected NAME=VALUE with the name of a setting.",
                next_step=f"Nearest: {', '.join(near)}." if near else f"Names: {', '.join(NAMES)}.",
            )
        inputs = inputs.changed(**_change(inputs, name, Sourced(value, f"cli:--set {name}")))
    return inputs


def _change(inputs: VllmInputs, name: str, raw: Sourced[str]) -> dict[str, Any]:
    if name in _INTS:
        field, minimum, maximum = _INTS[name]
        return {field: parse_int(raw, name, minimum=minimum, maximum=maximum).value}
    if name == "GPU_MEMORY_UTILIZATION":
        return {"gpu_memory_utilization": parse_float(raw, name, minimum=0.05, maximum=1).value}
    if name == "PREFIX_CACHING":
        return {"prefix_caching": parse_bool(raw, name).value}
    if name == "SPEC_N":
        depth = parse_int(raw, name, minimum=0, maximum=64).value
        if depth and not inputs.architecture.mtp_layers:
            raise UsageError(f"SPEC_N={depth}: this model has no built-in drafter.", next_step="Leave SPEC_N out.")
        return {"drafter": DrafterShape(kind=DrafterKind.MTP, depth=depth) if depth else DrafterShape()}
    return {_WORDS[name]: raw.value.strip()}
