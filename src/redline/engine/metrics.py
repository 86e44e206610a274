"""Whose metrics a text is, told by the names of its samples, and its counters. Knows no server.

A managed server's engine is known from its plan; an endpoint of `--url` says what it is by what it counts.
"""

from typing import Final

from redline.engine.counters import Counters, parse_prometheus
from redline.engine.llamacpp import COUNTER_NAMES as LLAMACPP_NAMES
from redline.engine.vllm import COUNTER_NAMES as VLLM_NAMES

_BY_PREFIX: Final = {"vllm:": ("vllm", VLLM_NAMES), "llamacpp:": ("llamacpp", LLAMACPP_NAMES)}


def engine_of_metrics(text: str) -> str | None:
    """Return the id of the engine whose sample names stand in a metrics text, or None."""
    return next((engine for prefix, (engine, _) in _BY_PREFIX.items() if f"\n{prefix}" in f"\n{text}"), None)


def read_metrics(text: str) -> Counters | None:
    """Return the counters in an engine's metrics, or None where it is none that redline knows.

    Raises:
        ValueError: not Prometheus text.
    """
    for prefix, (_, names) in _BY_PREFIX.items():
        if f"\n{prefix}" in f"\n{text}":
            return parse_prometheus(text, names)
    return None
