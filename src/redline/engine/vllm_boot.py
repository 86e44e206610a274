"""vLLM's boot log into `BootFacts`. Knows the lines of its log; knows no plan, no GPU and no process.

Lines were read on versions 0.20 to 0.33 (v1/worker/gpu_worker.py, v1/core/kv_cache_utils.py, kv_cache_planning.py,
platforms/interface.py, entrypoints' `non-default args`). Another version's log is read as far as it matches. The last
statement of a kind counts, as the last boot does; of the memory of several workers the least, since it bounds the pool.
"""

import ast
import math
import re
from typing import Any, Final

from redline.plan.types import BootFacts
from redline.units import GIB

_VERSION: Final = re.compile(
    r"(?:V1 LLM engine \(v|vLLM (?:API )?(?:server )?version |█  version |vllm[ =]+)v?(\d+\.\d+[\w.+]*)"
)
_ARGS: Final = re.compile(r"non-default args: (\{.*\})")
_MODEL: Final = re.compile(r"with config: model='([^']+)'")
_CONFIG: Final = re.compile(r"with config: (.*)")
_AVAILABLE: Final = re.compile(r"Available KV cache memory: (-?[\d.]+) GiB")
_TOKENS: Final = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY: Final = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
_BLOCK: Final = re.compile(r"attention block size to (\d+) tokens")
_LOADED: Final = re.compile(r"Model loading took ([\d.]+) GiB")
_BLOCKS: Final = re.compile(r"(?:num_gpu_blocks[\"']?\s*[=:]\s*|# GPU blocks: )[\"']?([\d,]+)")
_LENGTH: Final = re.compile(r"(?:Using max model len |max_seq_len=)(\d+)")
_USAGE: Final = re.compile(
    r"Free memory on device\D*\(([\d.]+)/([\d.]+) GiB\) on startup"
    r"(?:.*?utilization is \(([\d.]+),.*?([\d.]+) GiB for peak activation, and ([\d.]+) GiB for CUDAGraph)?"
)
_UTILIZATION: Final = re.compile(r"--gpu-memory-utilization[= ]([\d.]+) is equivalent")
_NEEDED: Final = re.compile(
    r"max seq len \(?([\d,]+)\)?, \(?([\d.]+) GiB (?:KV )?cache is needed, which is larger than the available KV cache "
    r"memory \(([\d.]+) GiB\)(?:.*?estimated maximum model length is (\d+))?"
)
_PREFILL: Final = re.compile(r"GDN prefill (?:backend|kernel)[^\w]*(?:is |=|: ?)?['\"]?(\w+)", re.IGNORECASE)
_NO_MEMORY: Final = "No available memory for the cache blocks"
_NOT_ENOUGH_FREE: Final = "is less than desired GPU memory utilization"
_GPU: Final = re.compile(r"(NVIDIA [A-Za-z0-9 ]*?(?:RTX|A|H|B|L)[A-Za-z]* ?\w+)")
MAX_LOG_CHARS: Final = 20_000_000


def parse_boot_log(text: str) -> BootFacts:
    """Return what a log says; what it does not say is None. The last statement of a kind counts, the least of bytes."""
    text = text[:MAX_LOG_CHARS]
    arguments = _arguments(text)
    speculative = arguments.get("speculative_config")
    speculative = speculative if isinstance(speculative, dict) else {}
    usage = _USAGE.findall(text)
    refusal = _last(_NEEDED, text)
    available = [number for item in _AVAILABLE.findall(text) if (number := _float(item)) is not None]
    free = [number for item in usage if (number := _float(item[0])) is not None]
    refused = bool(refusal) or _NO_MEMORY in text or _NOT_ENOUGH_FREE in text
    if refusal and not available and (stated := _float(refusal[2])) is not None:
        available = [stated]
    context = _last(_CONCURRENCY, text)
    return BootFacts(
        engine="vllm",
        engine_version=_text(_last(_VERSION, text)),
        model=_text(arguments.get("model")) or _text(arguments.get("model_tag")) or _text(_last(_MODEL, text)),
        available_bytes=_gib(min(available)) if available else None,
        blocks=_int(_last(_BLOCKS, text)),
        block_tokens=_int(_last(_BLOCK, text)),
        pool_tokens=_int(_last(_TOKENS, text)),
        context=_int(context[0] if context else refusal[0] if refusal else arguments.get("max_model_len"))
        or _int(_last(_LENGTH, text)),
        tensor_parallel=_int(arguments.get("tensor_parallel_size")) or _config_int(text, "tensor_parallel_size"),
        gpu_memory_utilization=_float(arguments.get("gpu_memory_utilization"))
        or _float(_last(_UTILIZATION, text))
        or _float(usage[-1][2] if usage else None),
        max_num_seqs=_int(arguments.get("max_num_seqs")),
        batched_tokens=_int(arguments.get("max_num_batched_tokens")),
        kv_cache_dtype=_text(arguments.get("kv_cache_dtype")) or _config_text(text, "kv_cache_dtype"),
        quantization=_text(arguments.get("quantization")) or _config_text(text, "quantization"),
        speculative_method=_text(speculative.get("method")) or _config_text(text, "method"),
        speculative_tokens=_int(speculative.get("num_speculative_tokens")) or _config_int(text, "num_spec_tokens"),
        gdn_prefill=_prefill(text),
        eager=True if arguments.get("enforce_eager") or _config_text(text, "enforce_eager") == "True" else None,
        loaded_bytes=_gib(_float(_last(_LOADED, text))),
        activation_bytes=_gib(_float(usage[-1][3])) if usage and usage[-1][3] else None,
        graph_bytes=_gib(_float(usage[-1][4])) if usage and usage[-1][4] else None,
        total_bytes=_gib(_float(usage[-1][1])) if usage else None,
        free_bytes=_gib(min(free)) if free else None,
        gpu_name=_text(_last(_GPU, text)),
        refused=refused,
        needed_bytes=_gib(_float(refusal[1])) if refusal else None,
        estimated_context=_int(refusal[3]) if refusal and refusal[3] else None,
    )


def _arguments(text: str) -> dict[str, Any]:
    for found in reversed(_ARGS.findall(text)):
        try:
            value = ast.literal_eval(found)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return {}


def _last(pattern: re.Pattern[str], text: str) -> Any:
    found = pattern.findall(text)
    return found[-1] if found else None


def _config_text(text: str, name: str) -> str | None:
    line = _last(_CONFIG, text)
    found = re.search(rf"\b{name}='?([\w.\-/]+)'?", line) if line else None
    return found[1] if found and found[1] != "None" else None


def _config_int(text: str, name: str) -> int | None:
    return _int(_config_text(text, name))


def _prefill(text: str) -> str | None:
    word = _text(_last(_PREFILL, text))
    return word.lower() if word and word.lower() in ("triton", "flashinfer") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _int(value: Any) -> int | None:
    try:
        return int(str(value).replace(",", "")) if value not in (None, "") else None
    except ValueError:
        return None


def _float(value: Any) -> float | None:
    try:
        number = float(value) if value not in (None, "") else math.nan
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _gib(value: float | None) -> int | None:
    return None if value is None else round(value * GIB)
