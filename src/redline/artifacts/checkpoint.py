"""A llama-family GGUF file as a checkpoint folder that vLLM serves: weights, config, tokenizer. Pure bytes to bytes.

Knows GGUF's names and the fields of the other form; knows no engine. Quantised tensors become bfloat16, which every
GPU engine takes: nothing is gained over the GGUF but that they can be served. Numpy and gguf are imported when used.
"""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from redline.artifacts.progress import FileProgress, Report
from redline.errors import FaultError, MissingError

# GGUF name -> name in the checkpoint (llama.cpp gguf-py/gguf/tensor_mapping.py, architecture llama).
_TOP: Final = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_LAYER: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL: Final = 3  # gguf TokenType.CONTROL


def gguf_to_checkpoint(source: Path, target: Path, artifact: str, report: Report) -> None:
    """Write one file of the checkpoint, told by the target's name; the same bytes everywhere.

    Raises:
        MissingError: the packages gguf and numpy are not installed.
        FaultError: a file that no recipe makes, or a GGUF of another architecture or tokenizer.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise MissingError(
            f"{artifact} is made with the packages gguf and numpy, which are not installed.",
            next_step="pip install 'redline-llm[embedded]'",
        ) from None
    reader = GGUFReader(str(source))
    keys = {name: field.contents() for name, field in reader.fields.items()}
    if keys.get("general.architecture") != "llama" or keys.get("tokenizer.ggml.pre") != "smollm":
        raise FaultError(f"{source.name} is of an architecture or a tokenizer that this recipe does not know.")
    if target.name == "model.safetensors":
        _write_weights(reader, keys, target, artifact, report)
        return
    makers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "config.json": _config,
        "generation_config.json": _generation,
        "tokenizer.json": _tokenizer,
        "tokenizer_config.json": _tokenizer_config,
    }
    if target.name not in makers:
        raise FaultError(f"{artifact} wants {target.name}, which this recipe does not make.")
    text = json.dumps(makers[target.name](keys), ensure_ascii=False, indent=1, sort_keys=True)
    target.write_text(text + "\n", encoding="utf-8")
    report(FileProgress(artifact, "derive", target.stat().st_size, None))


def _config(keys: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "bos_token_id": keys["tokenizer.ggml.bos_token_id"],
        "eos_token_id": keys["tokenizer.ggml.eos_token_id"],
        "pad_token_id": keys["tokenizer.ggml.padding_token_id"],
        "dtype": "bfloat16",
        "hidden_act": "silu",
        "hidden_size": keys["llama.embedding_length"],
        "intermediate_size": keys["llama.feed_forward_length"],
        "max_position_embeddings": keys["llama.context_length"],
        "mlp_bias": False,
        "num_attention_heads": keys["llama.attention.head_count"],
        "num_hidden_layers": keys["llama.block_count"],
        "num_key_value_heads": keys["llama.attention.head_count_kv"],
        "rms_norm_eps": 1e-05,  # the file holds it as a 32-bit float, 9.9999997e-06
        "rope_parameters": {"rope_theta": keys["llama.rope.freq_base"], "rope_type": "default"},
        "rope_theta": keys["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "vocab_size": keys["llama.vocab_size"],
    }


def _generation(keys: dict[str, Any]) -> dict[str, Any]:
    return {
        "bos_token_id": keys["tokenizer.ggml.bos_token_id"],
        "eos_token_id": keys["tokenizer.ggml.eos_token_id"],
        "pad_token_id": keys["tokenizer.ggml.padding_token_id"],
    }


def _tokenizer(keys: dict[str, Any]) -> dict[str, Any]:
    """Return byte-level BPE, every digit on its own: llama.cpp's `smollm` pre-tokenizer (src/llama-vocab.cpp)."""
    tokens, kinds = keys["tokenizer.ggml.tokens"], keys["tokenizer.ggml.token_type"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind == _CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [pair.split(" ", 1) for pair in keys["tokenizer.ggml.merges"]],
        },
    }


def _tokenizer_config(keys: dict[str, Any]) -> dict[str, Any]:
    tokens = keys["tokenizer.ggml.tokens"]
    named = {
        "bos_token": "tokenizer.ggml.bos_token_id",
        "eos_token": "tokenizer.ggml.eos_token_id",
        "pad_token": "tokenizer.ggml.padding_token_id",
        "unk_token": "tokenizer.ggml.unknown_token_id",
    }
    return {
        **{name: tokens[keys[key]] for name, key in named.items()},
        "add_prefix_space": False,
        "chat_template": keys["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "model_max_length": keys["llama.context_length"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _write_weights(reader: Any, keys: dict[str, Any], target: Path, artifact: str, report: Report) -> None:
    tensors = {_name(tensor.name): tensor for tensor in reader.tensors}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(tensors):
        shape = [int(size) for size in reversed(tensors[name].shape)]
        size_bytes = 2 * _product(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size_bytes]}
        end += size_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        done = 0
        for name, data in _values(tensors, keys):
            assert header[name]["data_offsets"][0] == done
            done += out.write(data)
            report(FileProgress(artifact, "derive", done, end))


def _values(tensors: dict[str, Any], keys: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    from gguf.quants import dequantize

    heads = {"q_proj": "llama.attention.head_count", "k_proj": "llama.attention.head_count_kv"}
    for name in sorted(tensors):
        tensor = tensors[name]
        values = dequantize(tensor.data, tensor.tensor_type)
        part = name.split(".")[-2]
        if part in heads:
            values = _unpermuted(values, int(keys[heads[part]]))
        yield name, _bfloat16(values)


def _name(gguf: str) -> str:
    """Return a tensor's name in the checkpoint.

    Raises:
        FaultError: a tensor that this architecture has not.
    """
    if gguf in _TOP:
        return _TOP[gguf]
    parts = gguf.split(".")
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in _LAYER:
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.weight"
    raise FaultError(f"the GGUF file has a tensor {gguf}, which this recipe does not know.")


def _product(shape: list[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _unpermuted(values: Any, heads: int) -> Any:
    """Undo the order that GGUF gives rotary halves: rows (half, pair) instead of (pair, half) of each head.

    Source: llama.cpp convert_hf_to_gguf.py LlamaModel.permute.
    """
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _bfloat16(values: Any) -> bytes:
    """Return float32 values as bfloat16, rounded to nearest, ties to even. Weights are finite."""
    import numpy as np

    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return bytes(rounded.astype("<u2").tobytes())
