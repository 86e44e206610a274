"""Layers without weights: the parts of vLLM's own layer classes that answer for their KV cache.

vLLM asks each layer for a `KVCacheSpec`. The classes here are vLLM's, made without their constructors, and carry just
the attributes that `get_kv_cache_spec` reads, so that the answers are vLLM's code and not a copy of it. Sources are
files of vllm 0.33.0. Not known: how blocks are counted (`allocator.py`).
"""

import math
from typing import Any, Final

from vllm.config import VllmConfig
from vllm.model_executor.layers.attention.attention import Attention
from vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn import (
    FLASHINFER_GDN_CHECKPOINT_ALIGNMENT,
    QwenGatedDeltaNetAttention,
)
from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE
from vllm.v1.attention.backend import AttentionBackend, AttentionType, MultipleOf


class FlashAttention(AttentionBackend):  # type: ignore[misc]
    """Block sizes of FLASH_ATTN, whose module needs a GPU: v1/attention/backends/flash_attn.py:357."""

    @classmethod
    def get_supported_kernel_block_sizes(cls, kv_cache_spec: Any = None) -> list[Any]:
        return [MultipleOf(16)]

    @staticmethod
    def get_name() -> str:
        return "FLASH_ATTN"


class FlashInfer(AttentionBackend):  # type: ignore[misc]
    """Block sizes of FLASHINFER below sm_100: v1/attention/backends/flashinfer.py:585."""

    @classmethod
    def get_supported_kernel_block_sizes(cls, kv_cache_spec: Any = None) -> list[Any]:
        return [16, 32, 64]

    @staticmethod
    def get_name() -> str:
        return "FLASHINFER"


BACKENDS: Final[dict[str, Any]] = {"flash_attn": FlashAttention, "flashinfer": FlashInfer}


def build_layers(config: VllmConfig, backend: str, gdn_prefill: str) -> None:
    """Put the target's and the drafter's layers where vLLM looks for layers (`static_forward_context`)."""
    layers = config.compilation_config.static_forward_context
    target = config.model_config
    text = target.hf_text_config
    for index, kind in enumerate(_layer_kinds(text)):
        if kind == "linear_attention":
            layers[f"model.layers.{index}.linear_attn"] = _gdn(config, text, gdn_prefill)
        else:
            window = text.sliding_window if kind == "sliding_attention" else None
            layers[f"model.layers.{index}.self_attn"] = _attention(
                config, target, config.parallel_config, backend=backend, window=window
            )
    for name, layer in _draft_layers(config, backend):
        layer.is_draft_layer = True
        layers[name] = layer


def _layer_kinds(text: Any) -> list[str]:
    return list(getattr(text, "layer_types", None) or ["full_attention"] * text.num_hidden_layers)


def _draft_layers(config: VllmConfig, backend: str) -> list[tuple[str, Any]]:
    speculative = config.speculative_config
    if speculative is None:
        return []
    draft, parallel = speculative.draft_model_config, speculative.draft_parallel_config
    if speculative.method == "mtp":
        # Full attention, one layer a module: model_executor/models/qwen3_5_mtp.py:82.
        count = getattr(draft.hf_text_config, "mtp_num_hidden_layers", 1)
        kinds: list[str] = ["full_attention"] * count
    else:
        kinds = _layer_kinds(draft.hf_text_config)
    return [
        (
            f"draft.layers.{index}.self_attn",
            _attention(
                config,
                draft,
                parallel,
                backend=backend,
                window=draft.hf_text_config.sliding_window if kind == "sliding_attention" else None,
            ),
        )
        for index, kind in enumerate(kinds)
    ]


def _attention(config: VllmConfig, model: Any, parallel: Any, *, backend: str, window: int | None) -> Any:
    """What model_executor/layers/attention/attention.py:611 reads."""
    layer = object.__new__(Attention)
    dtype = config.cache_config.cache_dtype
    layer.attn_type = AttentionType.DECODER
    layer.attn_backend = BACKENDS[backend]
    layer.kv_cache_dtype = dtype
    layer.kv_cache_torch_dtype = model.dtype if dtype == "auto" else STR_DTYPE_TO_TORCH_DTYPE[dtype]
    layer.num_kv_heads = model.get_num_kv_heads(parallel)
    layer.head_size = layer.head_size_v = model.get_head_size()
    layer.sliding_window = window
    return layer


def _gdn(config: VllmConfig, text: Any, prefill: str) -> Any:
    """What model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py:545 and :739 read."""
    layer = object.__new__(QwenGatedDeltaNetAttention)
    layer.vllm_config, layer.model_config, layer.cache_config = config, config.model_config, config.cache_config
    layer.tp_size = config.parallel_config.tensor_parallel_size
    layer.num_spec = config.num_speculative_tokens
    layer.num_k_heads, layer.num_v_heads = text.linear_num_key_heads, text.linear_num_value_heads
    layer.head_k_dim, layer.head_v_dim = text.linear_key_head_dim, text.linear_value_head_dim
    layer.conv_kernel_size = text.linear_conv_kernel_dim
    # :693, FlashInfer's prefill writes states from the middle of a prompt: blocks of 64, one state block more.
    exports = config.cache_config.mamba_cache_mode == "align" and prefill == "flashinfer"
    layer._checkpoint_alignment = FLASHINFER_GDN_CHECKPOINT_ALIGNMENT if exports else None
    return layer


def state_bytes(spec: Any) -> int:
    """Return the bytes of one recurrent state before padding."""
    return sum(math.prod(shape) * dtype.itemsize for shape, dtype in zip(spec.shapes, spec.dtypes, strict=True))
