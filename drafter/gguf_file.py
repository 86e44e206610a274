"""The drafter as a GGUF file that llama.cpp drafts with (`dflash`). Knows names and types; needs gguf and numpy.

Keys and tensor names: llama.cpp b11434 `conversion/qwen.py` class DFlashModel, `gguf-py/gguf/constants.py` from 1986.
The head holds the target's own rows (its quantised bytes, copied) of a reduced vocabulary, named by `d2t`.
"""

from pathlib import Path
from typing import Any, Final

from drafter.shape import Shape

_PER_LAYER: Final = {
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
    "attention_conv.base_kernel": "attn_conv_base",
    "attention_conv.kernel_projection.weight": "attn_conv_proj.weight",
    "mlp_conv.base_kernel": "ffn_conv_base",
    "mlp_conv.kernel_projection.weight": "ffn_conv_proj.weight",
}
_ONCE: Final = {
    "fc.weight": "fc.weight",
    "hidden_norm.weight": "enc.output_norm.weight",
    "norm.weight": "output_norm.weight",
    "candidate_selector.predecessor_codebook": "selector_predecessor.weight",
    "candidate_selector.successor_codebook": "selector_successor.weight",
    "candidate_selector.hidden_projection.weight": "selector_hidden.weight",
}
# The codebooks are most of the file and bear four bits; the projections are small, and are kept at eight.
CODEBOOK_TYPE: Final = "Q4_0"
MATRIX_TYPE: Final = "Q8_0"
# Of our own: an export may have a shorter block than the training had (drafter/reblock.py).
TRAINED_BLOCK_KEY: Final = "redline.trained_block_size"


def gguf_name(name: str) -> str:
    """Return a tensor's name in the GGUF file for its name in the checkpoint."""
    if name in _ONCE:
        return _ONCE[name]
    _, number, rest = name.split(".", 2)
    return f"blk.{number}.{_PER_LAYER[rest]}"


def checkpoint_name(name: str) -> str:
    """The reverse of `gguf_name`."""
    for ours, theirs in _ONCE.items():
        if theirs == name:
            return ours
    _, number, rest = name.split(".", 2)
    return f"layers.{number}." + next(ours for ours, theirs in _PER_LAYER.items() if theirs == rest)


def write_gguf(
    path: Path,
    shape: Shape,
    state: dict[str, Any],
    target: Path,
    draft_ids: list[int] | None,
    *,
    matrix_type: str = MATRIX_TYPE,
    codebook_type: str = CODEBOOK_TYPE,
) -> None:
    """Write a drafter.

    Args:
        state: numpy float32 arrays by their names in the checkpoint.
        target: the target's GGUF file, whose tokenizer and head rows are copied.
        draft_ids: the tokens that the head knows, ascending; None leaves the head to the target.
    """
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
    from gguf.quants import quantize

    reader = GGUFReader(str(target))
    writer = GGUFWriter(str(path), "dflash")
    writer.add_name("SmolLM2-135M-Instruct DFlash2")
    writer.add_license("apache-2.0")
    for key, kind, value in _keys(shape, GGUFValueType):
        sub_kind = None
        if kind == GGUFValueType.ARRAY:
            sub_kind = GGUFValueType.BOOL if isinstance(value[0], bool) else GGUFValueType.UINT32
        writer.add_key_value(key, value, kind, sub_type=sub_kind)
    for key, field in reader.fields.items():
        if key.startswith("tokenizer.") and key != "tokenizer.chat_template":
            kind = field.types[0]
            writer.add_key_value(
                key, field.contents(), kind, sub_type=field.types[-1] if kind == GGUFValueType.ARRAY else None
            )
    writer.add_uint32("tokenizer.ggml.mask_token_id", shape.mask_token)
    for name in sorted(state):
        values = np.ascontiguousarray(state[name], dtype=np.float32)
        if values.ndim == 2:
            kind = GGMLQuantizationType[codebook_type if name.endswith("_codebook") else matrix_type]
            if kind != GGMLQuantizationType.F32:
                writer.add_tensor(gguf_name(name), quantize(values, kind), raw_dtype=kind)
                continue
        writer.add_tensor(gguf_name(name), values)
    if draft_ids is not None:
        head = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
        rows = np.ascontiguousarray(head.data[np.asarray(draft_ids)])
        writer.add_tensor("output.weight", rows, raw_dtype=head.tensor_type)
        writer.add_tensor("d2t", np.asarray(draft_ids, dtype=np.int64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _keys(shape: Shape, kinds: Any) -> list[tuple[str, Any, Any]]:
    u32, f32 = kinds.UINT32, kinds.FLOAT32
    return [
        ("dflash.block_count", u32, shape.layers),
        ("dflash.context_length", u32, 8192),
        ("dflash.embedding_length", u32, shape.hidden),
        ("dflash.feed_forward_length", u32, shape.ffn),
        ("dflash.attention.head_count", u32, shape.heads),
        ("dflash.attention.head_count_kv", u32, shape.kv_heads),
        ("dflash.attention.key_length", u32, shape.head_dim),
        ("dflash.attention.value_length", u32, shape.head_dim),
        ("dflash.attention.layer_norm_rms_epsilon", f32, shape.eps),
        ("dflash.attention.causal", kinds.BOOL, False),
        ("dflash.attention.sliding_window", u32, shape.window),
        ("dflash.attention.sliding_window_pattern", kinds.ARRAY, [True] * shape.layers),
        ("dflash.rope.freq_base", f32, shape.rope_base),
        ("dflash.rope.dimension_count", u32, shape.head_dim),
        ("dflash.vocab_size", u32, shape.vocab),
        ("dflash.block_size", u32, shape.block),
        (TRAINED_BLOCK_KEY, u32, shape.block),
        ("dflash.conv_kernel_size", u32, shape.taps),
        ("dflash.conv_group_size", u32, shape.group),
        ("dflash.selector_rank", u32, shape.rank),
        ("dflash.selector_top_k", u32, shape.top_k),
        ("dflash.target_layers", kinds.ARRAY, list(shape.taken)),
    ]


def tensor_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """Return every tensor of a checkpoint with its shape, as torch and numpy count."""
    hidden, groups = shape.hidden, shape.groups
    found: dict[str, tuple[int, ...]] = {
        "fc.weight": (hidden, hidden * len(shape.taken)),
        "hidden_norm.weight": (hidden,),
        "norm.weight": (hidden,),
        "candidate_selector.predecessor_codebook": (shape.vocab, shape.rank),
        "candidate_selector.successor_codebook": (shape.vocab, shape.rank),
        "candidate_selector.hidden_projection.weight": (shape.rank, hidden),
    }
    for layer in range(shape.layers):
        q_size, kv_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        for name, size in {
            "input_layernorm.weight": (hidden,),
            "post_attention_layernorm.weight": (hidden,),
            "self_attn.q_proj.weight": (q_size, hidden),
            "self_attn.k_proj.weight": (kv_size, hidden),
            "self_attn.v_proj.weight": (kv_size, hidden),
            "self_attn.o_proj.weight": (hidden, q_size),
            "self_attn.q_norm.weight": (shape.head_dim,),
            "self_attn.k_norm.weight": (shape.head_dim,),
            "mlp.gate_proj.weight": (shape.ffn, hidden),
            "mlp.up_proj.weight": (shape.ffn, hidden),
            "mlp.down_proj.weight": (hidden, shape.ffn),
            "attention_conv.base_kernel": (2, shape.taps, hidden),
            "attention_conv.kernel_projection.weight": (2 * shape.taps * groups, hidden),
            "mlp_conv.base_kernel": (2, shape.taps, hidden),
            "mlp_conv.kernel_projection.weight": (2 * shape.taps * groups, hidden),
        }.items():
            found[f"layers.{layer}.{name}"] = size
    return found
