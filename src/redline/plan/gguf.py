"""Bytes of a GGUF model in llama.cpp: cache by type, recurrent state, compute buffers, and how layers lie on devices.

Knows architectures and cache types; knows no rig and no verdict. Sources: llama.cpp src/llama-kv-cache.cpp,
src/llama-memory-recurrent.cpp, ggml block_q8_0 and block_q4_0; buffer sizes as llama.cpp itself reports them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redline.catalog.memory import GgufTerm
from redline.catalog.types import Architecture, Catalog
from redline.plan.types import Term
from redline.plan.weights import parameter_counts
from redline.units import MIB

DENSE_FAMILIES: Final = frozenset({"llama", "qwen2", "qwen3"})
HYBRID_FAMILIES: Final = frozenset({"qwen3_next", "qwen3_5"})
# Bytes per cached value; quantised types hold blocks of 32 values with a 2-byte scale (ggml block_q8_0, block_q4_0).
CACHE_VALUE_BYTES: Final = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q4_0": 18 / 32}
STATE_VALUE_BYTES: Final = 4  # recurrent state and convolution inputs are kept in f32
LOGIT_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufInputs:
    """One configuration of one GGUF on llama.cpp. `split` is the share of layers a device; empty: even."""

    architecture: Architecture
    file_bytes: int
    context: int
    cache_type: str
    requests: int = 1
    batch: int = 512
    draft_layers: int = 0
    projector_bytes: int = 0
    split: tuple[float, ...] = ()


def unknown_reason(architecture: Architecture, cache_type: str) -> str | None:
    """Return why there is no formula for this, or None where there is one."""
    if architecture.family not in DENSE_FAMILIES | HYBRID_FAMILIES:
        return f"no formula for the architecture family {architecture.family!r}"
    if cache_type not in CACHE_VALUE_BYTES:
        return f"no formula for a cache of type {cache_type!r} (known: {', '.join(CACHE_VALUE_BYTES)})"
    return None


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, cache_type: str) -> float:
    """Return bytes that one token of context takes: a key and a value in every layer and head."""
    return layers * kv_heads * head_dim * 2 * CACHE_VALUE_BYTES[cache_type]


def cache_bytes(inputs: GgufInputs, layers: int) -> int:
    """Return the cache of `layers` attention layers for all requests' contexts."""
    a = inputs.architecture
    per_token = kv_bytes_per_token(layers, a.kv_heads, a.head_dim, inputs.cache_type)
    return round(per_token * inputs.context * inputs.requests)


def state_bytes(inputs: GgufInputs) -> int:
    """Return the recurrent layers' state for all requests: convolution inputs and the matrix, in f32."""
    linear = inputs.architecture.linear
    if linear is None:
        return 0
    channels = 2 * linear.key_heads * linear.key_head_dim + linear.value_heads * linear.value_head_dim
    matrix = linear.value_heads * linear.value_head_dim * linear.key_head_dim
    values = channels * (linear.conv_kernel - 1) + matrix
    return linear.layers * values * STATE_VALUE_BYTES * inputs.requests


def host_compute_bytes(architecture: Architecture, batch: int, context: int) -> int:
    """Return the compute buffer on the processor: activations of a batch in f32 and its f16 attention mask.

    Seen to 0.1 MiB on SmolLM2-135M at three contexts and two batches; the share of each width is that model's.
    """
    return batch * (4 * (3 * architecture.ffn + 5 * architecture.hidden) + 2 * context)


def device_terms(catalog: Catalog, inputs: GgufInputs, devices: int) -> tuple[tuple[Term, ...], ...]:
    """Return the terms of each GPU: layers by share, output and draft on the last, the projector on the first."""
    a = inputs.architecture
    counts = parameter_counts(a)
    total = counts.embedding + counts.head + counts.body + (counts.mtp if inputs.draft_layers else 0)
    per_value = inputs.file_bytes / total
    embedding, head = round(counts.embedding * per_value), round(counts.head * per_value)
    draft = round(counts.mtp * per_value) if inputs.draft_layers else 0
    body = inputs.file_bytes - embedding - head - draft
    shares = _shares(inputs.split, devices)
    cache, state = cache_bytes(inputs, a.full_attention_layers), state_bytes(inputs)
    plans = []
    for index, share in enumerate(shares):
        last, first = index == devices - 1, index == 0
        terms = [
            exact(
                "weights",
                round(body * share) + (head + draft if last else 0),
                f"{share:.0%} of the layers; the embedding stays in host memory",
            ),
            exact("cache", round(cache * share), f"{inputs.cache_type} cache of {inputs.context:,} tokens"),
        ]
        if state:
            terms.append(exact("recurrent state", round(state * share), "f32 state of the recurrent layers"))
        terms.append(measured(catalog, "several_gpus" if devices > 1 else "one_gpu", "compute"))
        if last:
            terms.append(
                exact("logits", inputs.batch * a.vocab * LOGIT_BYTES, f"{inputs.batch} tokens x {a.vocab:,} words")
            )
        if last and inputs.draft_layers:
            terms.append(exact("draft cache", cache_bytes(inputs, inputs.draft_layers), "the drafter's own layers"))
            terms.append(measured(catalog, "draft", "draft context"))
        if first and inputs.projector_bytes:
            terms.append(exact("projector", inputs.projector_bytes, "size of its file"))
            terms.append(measured(catalog, "projector", "projector buffers"))
        plans.append(tuple(terms))
    return tuple(plans)


def exact(name: str, size_bytes: int, basis: str) -> Term:
    """Return a term without doubt."""
    return Term(name=name, best_bytes=size_bytes, low_bytes=size_bytes, high_bytes=size_bytes, basis=basis)


def measured(catalog: Catalog, where: str, name: str) -> Term:
    """Return a measured term of the catalogue; unknown is nothing at best and everything at worst."""
    term: GgufTerm | None = next((item for item in catalog.gguf_terms.values() if item.where == where), None)
    if term is None:
        return exact(name, 0, "not measured")
    return Term(
        name=name,
        best_bytes=round(term.best_mib * MIB),
        low_bytes=round(term.low_mib * MIB),
        high_bytes=round(term.high_mib * MIB),
        basis=f"{term.title}: {term.source}",
    )


def _shares(split: Sequence[float], devices: int) -> list[float]:
    given = list(split[:devices])
    if len(given) != devices or not 0 < sum(given) < math.inf or min(given) < 0:
        return [1 / devices] * devices
    return [share / sum(given) for share in given]
