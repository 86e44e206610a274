"""Whose metrics a text is, by the prefix of its sample names, and its counters.

A managed server's engine is known from its plan; an endpoint of `--url` says what it is by what it counts.
"""

from typing import Final

from redline.engine.counters import Counters, parse_prometheus
from redline.engine.llamacpp import COUNTER_NAMES as LLAMACPP_NAMES

# vLLM 0.33.0 vllm/v1/metrics/loggers.py; `_total` is added by Prometheus' client.
VLLM_NAMES: Final = {
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_prompt_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:spec_decode_num_accepted_tokens_per_pos_total": "accepted_by_position",
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
    "vllm:num_preemptions_total": "preemptions",
}
_BY_PREFIX: Final = {"vllm:": ("vllm", VLLM_NAMES), "llamacpp:": ("llamacpp", LLAMACPP_NAMES)}


def engine_of_metrics(text: str) -> str | None:
    """Return the id of the engine whose sample names stand in a metrics text, or None."""
    return next((engine for prefix, (engine, _) in _BY_PREFIX.items() if f"\n{prefix}" in f"\n{text}"), None)


def read_metrics(text: str) -> Counters | None:
    """Return the counters of a known engine's metrics text, or None where the engine is not known.

    Raises:
        ValueError: not Prometheus text.
    """
    for prefix, (_, names) in _BY_PREFIX.items():
        if f"\n{prefix}" in f"\n{text}":
            return parse_prometheus(text, names)
    return None
