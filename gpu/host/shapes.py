"""Checkpoints without weights: the shape of Qwen3.8-27B and of its drafters, as folders that vLLM can load dummies for.

Knows the config files' fields (sources: config.json of Qwen/Qwen3.8-27B and of its DFlash2 drafter); knows no engine.
"""

import json
from pathlib import Path
from typing import Any

DRAFT_LAYERS = 5


def target_config(state_dtype: str = "float32", shards: int = 1) -> dict[str, Any]:
    """The target's text model; `shards` 2 gives the part that one of two GPUs would hold, to warm its kernels up."""
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "hidden_size": 5120,
        "intermediate_size": 17408 // shards,
        "num_hidden_layers": 64,
        "num_attention_heads": 24 // shards,
        "num_key_value_heads": 4 // shards,
        "head_dim": 256,
        "vocab_size": 248320 // shards,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "linear_num_key_heads": 16 // shards,
        "linear_num_value_heads": 48 // shards,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 16,
        "tie_word_embeddings": False,
        "attn_output_gate": True,
        "mtp_num_hidden_layers": 1,
        "hidden_act": "silu",
        "partial_rotary_factor": 0.25,
        "rope_parameters": {"rope_theta": 1e7, "rope_type": "default", "partial_rotary_factor": 0.25},
        "dtype": "bfloat16",
        "eos_token_id": 248046 // shards,
        "mamba_ssm_dtype": state_dtype,
    }


def drafter_config(block_size: int = 8, *, quantised: bool = False, shards: int = 1) -> dict[str, Any]:
    """The block drafter; `quantised` describes its layers as W4A16 in compressed-tensors form."""
    config: dict[str, Any] = {
        "architectures": ["DFlash2DraftModel"],
        "model_type": "qwen3",
        "hidden_size": 5120,
        "intermediate_size": 17408 // shards,
        "num_hidden_layers": DRAFT_LAYERS,
        "num_attention_heads": 32 // shards,
        "num_key_value_heads": 8 // shards,
        "head_dim": 128,
        "vocab_size": 248320 // shards,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "is_causal": False,
        "use_sliding_window": True,
        "sliding_window": 2048,
        "max_window_layers": 0,
        "layer_types": ["sliding_attention"] * DRAFT_LAYERS,
        "num_target_layers": 64,
        "rope_parameters": {"rope_theta": 1e7, "rope_type": "default"},
        "dtype": "bfloat16",
        "block_size": block_size,
        "dflash_config": {
            "block_size": block_size,
            "conv_kernel_size": 2,
            "conv_group_size": 16,
            "selector_rank": 256,
            "selector_top_k": 16,
            "mask_token_id": 248070 // shards,
            "target_layer_ids": [1, 16, 31, 46, 61],
        },
    }
    if quantised:
        config["quantization_config"] = {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "quantization_status": "compressed",
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {
                        "num_bits": 4,
                        "type": "int",
                        "symmetric": True,
                        "strategy": "group",
                        "group_size": 128,
                        "dynamic": False,
                        "observer": "minmax",
                    },
                }
            },
            # The published drafter keeps its selector and its convolutions' projections unquantised.
            "ignore": ["lm_head", "re:.*selector.*", "re:.*conv.*", "re:.*fc$"],
        }
    return config


CHECKPOINTS = {
    "target-float32": target_config("float32"),
    "target-bfloat16": target_config("bfloat16"),
    "target-half": target_config("float32", shards=2),
    "drafter-8": drafter_config(8),
    "drafter-16": drafter_config(16),
    "drafter-8-w4a16": drafter_config(8, quantised=True),
    "drafter-half": drafter_config(8, shards=2),
}


def write_checkpoints(folder: Path) -> None:
    """Write a folder with a config.json for each checkpoint."""
    for name, config in CHECKPOINTS.items():
        path = folder / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
