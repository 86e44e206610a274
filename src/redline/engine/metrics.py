"""Which engine's metrics a text holds, told by the names in it. Knows no server."""

from collections.abc import Mapping
from typing import Final

from redline.engine.counters import Counters, parse_prometheus
from redline.engine.llamacpp import COUNTER_NAMES as LLAMACPP_NAMES

# Sample names of vLLM's /metrics: vLLM 0.33.0 vllm/v1/metrics/loggers.py, vllm/v1/spec_decode/metrics.py. Its counter
# of prompt tokens holds the cached ones as well.
VLLM_NAMES: Final[Mapping[str, str]] = {
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_prompt_tokens",
    "vllm:request_prefill_time_seconds_sum": "prompt_seconds",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:request_decode_time_seconds_sum": "generation_seconds",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:spec_decode_num_accepted_tokens_per_pos_total": "accepted_by_position",
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
}
_NAMES: Final = {"vllm:": VLLM_NAMES, "llamacpp:": LLAMACPP_NAMES}


def read_counters(text: str) -> Counters | None:
    """Return the counters in an engine's metrics, or None where it is none that redline knows.

    Raises:
        ValueError: not Prometheus text.
    """
    for prefix, names in _NAMES.items():
        if f"\n{prefix}" in f"\n{text}":
            return parse_prometheus(text, names)
    return None
