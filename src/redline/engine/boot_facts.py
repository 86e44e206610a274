"""What an engine reports when it starts, as `BootFacts`. Knows log lines; no plan, no GPU and no process.

vLLM's lines were read in 0.20 to 0.33; their files are named beside the patterns. llama.cpp has no block pool, so its
facts are its build, its context and nothing of blocks. The last statement of a kind counts, as the last boot does; of
the memory of several workers the least counts, since it bounds the pool.
"""

import re
from collections.abc import Iterable
from typing import Final

from redline.plan.types import BootFacts
from redline.units import GIB

# vllm/v1/engine/core.py:139, vllm/entrypoints/common/startup.py:48
_VERSION: Final = re.compile(r"(?:V1 LLM engine \(v|vLLM (?:API )?server version |█  version )(\d+\.\d+[\w.+]*)")
# vllm/v1/worker/gpu_worker.py:772
_AVAILABLE: Final = re.compile(r"Available KV cache memory: (-?[\d.]+) GiB")
# vllm/v1/core/kv_cache_utils.py:1147; on two lines before 0.33
_POOL: Final = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY: Final = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request")
# vllm/platforms/interface.py:1108
_BLOCK: Final = re.compile(r"attention block size to (\d+) tokens")
_BLOCKS: Final = re.compile(r"(?:num_gpu_blocks[\"']?\s*[=:]\s*|# GPU blocks: )[\"']?([\d,]+)")
_PARALLEL: Final = re.compile(r"tensor_parallel_size['\"]?\s*[=:]\s*(\d+)")
_LENGTH: Final = re.compile(r"(?:Using max model len |max_seq_len=|'max_model_len': )(\d+)")
# llama.cpp tools/server/server.cpp and server-context.cpp, captured
_BUILD: Final = re.compile(r"build_info: (\S+)")
_SLOT_CONTEXT: Final = re.compile(r"n_ctx_slot = (\d+)")


def parse_boot_facts(engine: str, lines: Iterable[str]) -> BootFacts:
    """Return what a boot log of an engine states; what it does not state is None."""
    if engine == "vllm":
        return _vllm(lines)
    if engine == "llamacpp":
        return _llamacpp(lines)
    return BootFacts(engine=engine)


def _vllm(lines: Iterable[str]) -> BootFacts:
    version: str | None = None
    available: list[float] = []
    found: dict[str, int] = {}
    patterns = {
        "pool_tokens": _POOL,
        "block_tokens": _BLOCK,
        "blocks": _BLOCKS,
        "tensor_parallel": _PARALLEL,
        "context": _LENGTH,
        "pool_context": _CONCURRENCY,
    }
    for line in lines:
        if match := _VERSION.search(line):
            version = match[1]
        if match := _AVAILABLE.search(line):
            available.append(float(match[1]))
        for name, pattern in patterns.items():
            if match := pattern.search(line):
                found[name] = int(match[1].replace(",", ""))
    # The length that the pool was computed for is the one that counts: an engine may have lowered what was asked.
    context = found.pop("pool_context", None) or found.pop("context", None)
    found.pop("context", None)
    return BootFacts(
        engine="vllm",
        engine_version=version,
        available_bytes=round(min(available) * GIB) if available else None,
        context=context,
        **found,
    )


def _llamacpp(lines: Iterable[str]) -> BootFacts:
    build: str | None = None
    context: int | None = None
    for line in lines:
        if match := _BUILD.search(line):
            build = match[1]
        if match := _SLOT_CONTEXT.search(line):
            context = int(match[1])
    return BootFacts(engine="llamacpp", engine_version=build, context=context)
