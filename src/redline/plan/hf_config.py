"""A checkpoint's own config.json, and the index beside it, as an architecture and bytes of weights.

Knows the families below; any other is unknown, with the reason, never a guess. Contradictions in a config are
refused. Reads files; knows no catalogue and no rig.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from redline.catalog.types import Architecture, LinearAttention, SlidingAttention
from redline.plan.inputs import UnknownPlanError
from redline.plan.weights import WeightBytes, weights_of_shape

DENSE: Final = frozenset({"llama", "mistral", "qwen2", "qwen3", "phi3", "granite", "olmo2"})
SLIDING: Final = frozenset({"gemma2", "gemma3_text", "gpt_oss", "ministral"})
HYBRID: Final = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_text"})
MAX_CONFIG_BYTES: Final = 4_000_000
MAX_COUNT: Final = 2**24
QUANT_FORMATS: Final = {
    "auto-round": "int4",
    "auto_round": "int4",
    "gptq": "int4",
    "awq": "int4",
    "fp8": "fp8",
    "modelopt": "nvfp4",
    "modelopt_fp4": "nvfp4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a folder of weights says about itself. `weights` has 0 bytes where neither index nor files are there."""

    name: str
    architecture: Architecture
    context_max: int
    weights: WeightBytes
    weight_format: str
    vision: bool


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint of a config.json, or of a folder that holds one.

    Raises:
        UnknownPlanError: not readable, not JSON, an unsupported family, a missing field, or one that contradicts
            another; the message names it.
    """
    file = path / "config.json" if path.is_dir() else path
    data = _load(file)
    text = data.get("text_config", data)
    if not isinstance(text, Mapping):
        raise UnknownPlanError("text_config is not an object")
    merged = {**{key: value for key, value in data.items() if key not in text}, **text}
    architecture = architecture_of(merged)
    quantization = merged.get("quantization_config")
    method = str(quantization.get("quant_method", "")) if isinstance(quantization, Mapping) else ""
    return Checkpoint(
        name=file.resolve().parent.name,
        architecture=architecture,
        context_max=_count(merged, "max_position_embeddings"),
        weights=_weights(file.parent, architecture, method),
        weight_format=QUANT_FORMATS.get(method, method or "bf16"),
        vision="vision_config" in data,
    )


def architecture_of(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture a text config describes.

    Raises:
        UnknownPlanError: see `read_checkpoint`.
    """
    family = str(config.get("model_type", ""))
    if family not in DENSE | SLIDING | HYBRID:
        known = ", ".join(sorted(DENSE | SLIDING | HYBRID))
        raise UnknownPlanError(f"model_type {family or 'is missing'!r} is no family known here (known: {known})")
    if config.get("kv_lora_rank") or config.get("q_lora_rank"):
        raise UnknownPlanError("multi-head latent attention is not modelled")
    layers, hidden, heads = (
        _count(config, name) for name in ("num_hidden_layers", "hidden_size", "num_attention_heads")
    )
    kv_heads = _count(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise UnknownPlanError(f"{heads} attention heads are no multiple of {kv_heads} key-value heads")
    if "head_dim" not in config and hidden % heads:
        raise UnknownPlanError(f"hidden_size {hidden} is no multiple of {heads} heads and head_dim is missing")
    experts = config.get("num_experts") or config.get("num_local_experts") or config.get("n_routed_experts")
    kinds = _layer_kinds(config, layers, family)
    return Architecture(
        family=family,
        layers=layers,
        hidden=hidden,
        ffn=_count(config, "intermediate_size", 0 if experts else None),
        vocab=_count(config, "vocab_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_count(config, "head_dim", hidden // heads),
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        source="config.json",
        linear=_linear(config, kinds["linear"]) if kinds["linear"] else None,
        sliding=SlidingAttention(layers=kinds["sliding"], window=_count(config, "sliding_window"))
        if kinds["sliding"]
        else None,
        mtp_layers=_count(config, "mtp_num_hidden_layers", 0, least=0),
    )


def _load(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise UnknownPlanError(f"{file.name} is larger than any config")
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnknownPlanError(f"{file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise UnknownPlanError(f"{file} is not JSON") from None
    if not isinstance(data, dict):
        raise UnknownPlanError(f"{file} is not a JSON object")
    return data


def _count(config: Mapping[str, Any], name: str, default: int | None = None, *, least: int = 1) -> int:
    value = config.get(name)
    if value is None:
        if default is None:
            raise UnknownPlanError(f"{name} is missing")
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
        raise UnknownPlanError(f"{name} is {value!r}, not a count")
    return value


def _layer_kinds(config: Mapping[str, Any], layers: int, family: str) -> dict[Literal["linear", "sliding"], int]:
    stated = config.get("layer_types")
    if stated is not None:
        if not isinstance(stated, list) or len(stated) != layers:
            raise UnknownPlanError(f"layer_types does not list {layers} layers")
        odd = {str(kind) for kind in stated} - {"full_attention", "sliding_attention", "linear_attention"}
        if odd:
            raise UnknownPlanError(f"layers of type {', '.join(sorted(odd))} are not modelled")
        return {"linear": stated.count("linear_attention"), "sliding": stated.count("sliding_attention")}
    if family in HYBRID:
        interval = _count(config, "full_attention_interval")
        return {"linear": layers - layers // interval, "sliding": 0}
    if family in SLIDING:
        raise UnknownPlanError("layer_types is missing: which layers slide is not known")
    window = config.get("sliding_window") if config.get("use_sliding_window", family == "mistral") else None
    return {"linear": 0, "sliding": layers if window else 0}


def _linear(config: Mapping[str, Any], layers: int) -> LinearAttention:
    stated = config.get("mamba_ssm_dtype") or config.get("dtype") or config.get("torch_dtype") or "bfloat16"
    state: Literal["float32", "bfloat16", "float16"] | None = next(
        (known for known in ("float32", "bfloat16", "float16") if known == stated), None
    )
    if state is None:
        raise UnknownPlanError(f"recurrent state of type {stated!r} is not modelled")
    return LinearAttention(
        layers=layers,
        key_heads=_count(config, "linear_num_key_heads"),
        value_heads=_count(config, "linear_num_value_heads"),
        key_head_dim=_count(config, "linear_key_head_dim"),
        value_head_dim=_count(config, "linear_value_head_dim"),
        conv_kernel=_count(config, "linear_conv_kernel_dim"),
        state_dtype=state,
    )


def _weights(folder: Path, architecture: Architecture, method: str) -> WeightBytes:
    index = folder / "model.safetensors.index.json"
    size: Any = None
    if index.is_file():
        try:
            size = _load(index).get("metadata", {}).get("total_size")
        except (UnknownPlanError, AttributeError):
            size = None
        basis = "total_size of the safetensors index"
    else:
        files = [item.stat().st_size for item in folder.glob("*.safetensors")]
        size, basis = (sum(files) or None), "size of the safetensors files"
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return WeightBytes(sharded=size, replicated=0, mtp=0, basis=basis, file_bytes=size)
    if not method and architecture.ffn:
        return weights_of_shape(architecture, 2)
    return WeightBytes(sharded=0, replicated=0, mtp=0, basis="neither index nor files are there")
