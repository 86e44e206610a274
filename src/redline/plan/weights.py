"""How many bytes of weights lie on one GPU: the target's, its built-in drafter's, an external drafter's.

Knows tensor parallelism's split and which formats hold the built-in drafter unquantised; knows no engine overhead.
"""

from dataclasses import dataclass
from typing import Final

from redline.catalog.memory import WeightFormat
from redline.catalog.types import Architecture

# Attention of these families also projects a gate as wide as its queries (vLLM 0.33.0 qwen3_next.py attn_output_gate).
GATED_FAMILIES: Final = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters of a dense decoder; norms and biases (under 0.1 %) are left out."""

    embedding: int
    head: int
    body: int
    mtp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightBytes:
    """Bytes of a checkpoint as an engine holds it, before any split; `basis` says what they rest on."""

    sharded: int
    replicated: int
    mtp: int
    basis: str
    file_bytes: int = 0

    def on_card(self, tensor_parallel: int) -> int:
        """Return bytes on one GPU, the built-in drafter left out."""
        return self.sharded // tensor_parallel + self.replicated

    def mtp_on_card(self, tensor_parallel: int) -> int:
        """Return bytes of the built-in drafter on one GPU."""
        return self.mtp // tensor_parallel


def parameter_counts(architecture: Architecture) -> ParameterCounts:
    """Return the parameters of a dense decoder with full, sliding or gated-delta-net layers.

    Source: the module shapes of vLLM 0.33.0 model_executor/models/qwen3_next.py and qwen2.py.
    """
    a = architecture
    query = a.heads * a.head_dim * (2 if a.family in GATED_FAMILIES else 1)
    attention = a.hidden * (query + 2 * a.kv_heads * a.head_dim) + a.heads * a.head_dim * a.hidden
    ffn = 3 * a.hidden * a.ffn
    linear_layers = a.linear.layers if a.linear else 0
    body = (a.layers - linear_layers) * attention + a.layers * ffn
    if a.linear:
        keys, values = a.linear.key_heads * a.linear.key_head_dim, a.linear.value_heads * a.linear.value_head_dim
        projections = a.hidden * (2 * keys + 2 * values + 2 * a.linear.value_heads) + values * a.hidden
        body += linear_layers * (projections + (2 * keys + values) * a.linear.conv_kernel)
    mtp = a.mtp_layers * (attention + ffn + 2 * a.hidden * a.hidden)
    table = a.vocab * a.hidden
    return ParameterCounts(embedding=table, head=0 if a.tied_embeddings else table, body=body, mtp=mtp)


def weights_of_files(architecture: Architecture, file_bytes: int, form: WeightFormat) -> WeightBytes:
    """Return how a checkpoint of `file_bytes` lies in memory. Everything but the built-in drafter counts as split."""
    mtp = parameter_counts(architecture).mtp
    in_files = min(file_bytes, round(mtp * form.file_mtp_bytes_per_value))
    return WeightBytes(
        sharded=file_bytes - in_files,
        replicated=0,
        mtp=round(mtp * form.mtp_bytes_per_value),
        file_bytes=file_bytes,
        basis=f"size of the files ({form.title}), the built-in drafter counted only where it is loaded",
    )


def weights_of_shape(architecture: Architecture, bytes_per_value: float) -> WeightBytes:
    """Return the bytes that the shape alone implies, for weights without files."""
    counts = parameter_counts(architecture)
    return WeightBytes(
        sharded=round((counts.embedding + counts.head + counts.body) * bytes_per_value),
        replicated=0,
        mtp=round(counts.mtp * bytes_per_value),
        basis=f"parameters of the shape x {bytes_per_value:g} bytes",
    )
