"""What must hold of the facts behind memory plans, so that a plan never meets a number it cannot divide by.

Problems are collected with file and line, as in `checks`; the arithmetic itself is the plan room's.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from redline.catalog.memory import Boot
from redline.catalog.sources import Problems
from redline.catalog.types import Catalog
from redline.catalog.versions import parse_versions

CONDITIONS: Final = (
    "engine",
    "weights",
    "drafter",
    "compute",
    "tensor_parallel",
    "batched_tokens",
    "vision",
    "graphs",
)
"""What an overhead may depend on; `plan.overhead.Conditions` has the same names."""
_COUNTS: Final = ("gpus", "tensor_parallel", "max_model_len", "max_num_seqs", "batched_tokens")
_CONSTANTS: Final = (
    "rounding_tokens",
    "rounding_uncached_tokens",
    "default_block_tokens",
    "state_blocks",
    "state_blocks_uncached",
)


def check_memory(catalog: Catalog, places: Mapping[tuple[str, str], str], problems: Problems) -> None:
    """Note everything that does not hold."""
    for boot in catalog.boots.values():
        for text in _boot_problems(catalog, boot):
            problems.add(places["boots", boot.id], f"boot {boot.id}: {text}")
    for term in catalog.overheads.values():
        where = places["overheads", term.id]
        if not (0 < term.prior_sd_gib < math.inf and math.isfinite(term.prior_gib)):
            problems.add(where, f"overhead {term.id}: a prior needs a number and a spread above zero")
        for name in term.when:
            if name not in CONDITIONS:
                problems.add(where, f"overhead {term.id} asks for {name!r}; known: {', '.join(CONDITIONS)}")
        _check_range(str(term.when.get("engine", "all")), f"overhead {term.id}", where, problems)
    for item in catalog.kv_geometries.values():
        where = places["kv_geometries", item.id]
        _check_range(item.versions, f"geometry {item.id}", where, problems)
        for name in _CONSTANTS:
            _check_positive(getattr(item, name), f"geometry {item.id}: {name}", where, problems)
    for gpu in catalog.hardware.values():
        if not 0 < gpu.torch_visible_bytes <= gpu.memory_total_bytes:
            text = f"hardware {gpu.id}: the visible memory must be above zero and no more than the total"
            problems.add(places["hardware", gpu.id], text)


def _boot_problems(catalog: Catalog, boot: Boot) -> list[str]:
    found = []
    if boot.hardware not in catalog.hardware:
        found.append(f"unknown hardware {boot.hardware!r}")
    if boot.weights_bytes is not None and boot.weights not in catalog.weight_formats:
        found.append(f"unknown format of weights {boot.weights!r}; known: {', '.join(catalog.weight_formats)}")
    if not boot.source.strip():
        found.append("a boot needs a source")
    share = boot.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        found.append(f"gpu_memory_utilization {share:g} is no share")
    found += [f"{name} must be at least 1" for name in _COUNTS if getattr(boot, name) < 1]
    if boot.spec_n < 0 or (boot.pool_tokens or 0) < 0:
        found.append("spec_n and pool_tokens cannot be negative")
    return found


def _check_range(text: str, owner: str, where: str, problems: Problems) -> None:
    try:
        parse_versions(text)
    except ValueError as error:
        problems.add(where, f"{owner}: {error}")


def _check_positive(value: Any, owner: str, where: str, problems: Problems) -> None:
    if value < 1:
        problems.add(where, f"{owner} must be at least 1")
