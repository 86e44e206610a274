"""The Hugging Face folder that vLLM loads as `DFlash2DraftModel`, derived from the GGUF file: everywhere the same.

    python -m drafter.hf_folder DRAFTER.gguf FOLDER [BLOCK]      (left out: the block that was trained)

Keys: vLLM 0.33.0 `model_executor/models/qwen3_dflash2.py` and `qwen3_dflash.py`. vLLM counts the layers whose *output*
is read, llama.cpp those whose input is: one less here. The head and `d2t` are left out: vLLM's candidate heads take
the target's own head (`compute_candidates` maps no reduced vocabulary).
"""

import hashlib
import json
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from drafter.load import read_gguf, trained_block
from drafter.shape import Shape


def config_of(shape: Shape) -> dict[str, object]:
    """Return config.json for a drafter."""
    return {
        "architectures": ["DFlash2DraftModel"],
        "model_type": "qwen3",
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": 8192,
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_base},
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "is_causal": False,
        "use_sliding_window": True,
        "sliding_window": shape.window,
        "max_window_layers": 0,
        "layer_types": ["sliding_attention"] * shape.layers,
        "block_size": shape.block,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dflash_config": {
            "block_size": shape.block,
            "mask_token_id": shape.mask_token,
            "target_layer_ids": [number - 1 for number in shape.taken],
            "conv_kernel_size": shape.taps,
            "conv_group_size": shape.group,
            "selector_rank": shape.rank,
            "selector_top_k": shape.top_k,
        },
        "dtype": "bfloat16",
    }


def bfloat16_bytes(values: Any) -> bytes:
    """Return a float32 array as bfloat16, rounded to nearest, ties to even."""
    import numpy as np

    wide = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded: bytes = ((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype("<u2").tobytes()
    return rounded


def write_safetensors(path: Path, state: dict[str, Any]) -> None:
    """Write tensors by name in bfloat16 (https://huggingface.co/docs/safetensors, the format's own page)."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at, blobs = 0, []
    for name in sorted(state):
        blob = bfloat16_bytes(state[name])
        header[name] = {"dtype": "BF16", "shape": list(state[name].shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_folder(drafter: Path, folder: Path, block: int | None = None) -> str:
    """Write config.json and model.safetensors; return the latter's SHA-256."""
    shape, state, _ = read_gguf(drafter)
    shape = replace(shape, block=block or trained_block(drafter))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(shape), indent=2) + "\n", encoding="utf-8")
    write_safetensors(folder / "model.safetensors", state)
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


if __name__ == "__main__":
    print(write_folder(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
