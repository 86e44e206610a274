"""Local config.json files: the families that are known, what contradicts itself, and JSON of any kind."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.catalog.types import Catalog
from redline.plan.hf_config import architecture_of, read_checkpoint
from redline.plan.inputs import UnknownPlanError

DENSE: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
SLIDING = DENSE | {
    "model_type": "gemma3_text",
    "sliding_window": 512,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
}
HYBRID = {
    "model_type": "qwen3_5",
    "vision_config": {"depth": 27},
    "text_config": {
        "model_type": "qwen3_5_text",
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 48,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
    },
}


def _folder(tmp_path: Path, config: object) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def _without(config: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != name}


def test_a_dense_model(tmp_path: Path) -> None:
    found = read_checkpoint(_folder(tmp_path, DENSE))
    assert (found.name, found.context_max, found.weight_format, found.vision) == ("model", 4096, "bf16", False)
    assert (found.architecture.full_attention_layers, found.architecture.linear, found.architecture.sliding) == (
        4,
        None,
        None,
    )


def test_sliding_layers_are_counted(tmp_path: Path) -> None:
    a = read_checkpoint(_folder(tmp_path, SLIDING)).architecture
    assert a.sliding is not None
    assert (a.sliding.layers, a.sliding.window, a.full_attention_layers) == (3, 512, 1)


def test_the_hybrid_model_is_that_of_the_catalogue(tmp_path: Path, shapes: Catalog) -> None:
    found = read_checkpoint(_folder(tmp_path, HYBRID))
    known = shapes.models["qwen3.8-27b"].architecture
    assert found.vision
    assert found.architecture.linear == known.linear
    for name in ("layers", "hidden", "ffn", "vocab", "heads", "kv_heads", "head_dim", "mtp_layers"):
        assert getattr(found.architecture, name) == getattr(known, name), name


def test_layer_types_count_before_an_interval(tmp_path: Path) -> None:
    text = HYBRID["text_config"] | {"layer_types": ["linear_attention"] * 60 + ["full_attention"] * 4}  # type: ignore[operator]
    a = read_checkpoint(_folder(tmp_path, HYBRID | {"text_config": text})).architecture
    assert a.full_attention_layers == 4


def test_weights_of_the_index(tmp_path: Path) -> None:
    folder = _folder(tmp_path, DENSE | {"quantization_config": {"quant_method": "gptq"}})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 12345}}))
    found = read_checkpoint(folder / "config.json")
    assert (found.weights.file_bytes, found.weight_format) == (12345, "int4")
    assert "index" in found.weights.basis


def test_weights_of_the_files(tmp_path: Path) -> None:
    folder = _folder(tmp_path, DENSE)
    (folder / "a.safetensors").write_bytes(b"x" * 70)
    (folder / "b.safetensors").write_bytes(b"x" * 30)
    assert read_checkpoint(folder).weights.file_bytes == 100


@pytest.mark.parametrize("index", ["[]", "{}", "{", '{"metadata": 3}', '{"metadata": {"total_size": -1}}'])
def test_an_index_that_says_nothing(tmp_path: Path, index: str) -> None:
    folder = _folder(tmp_path, DENSE | {"quantization_config": {"quant_method": "fp8"}})
    (folder / "model.safetensors.index.json").write_text(index)
    assert read_checkpoint(folder).weights.sharded == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "deepseek_v3"}, "deepseek_v3"),
        ({"model_type": None}, "model_type"),
        ({"kv_lora_rank": 512}, "latent attention"),
        ({"num_key_value_heads": 3}, "no multiple of 3"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0"),
        ({"num_hidden_layers": -4}, "not a count"),
        ({"num_hidden_layers": "many"}, "not a count"),
        ({"num_hidden_layers": True}, "not a count"),
        ({"num_hidden_layers": 10**30}, "not a count"),
        ({"vocab_size": 1.5}, "not a count"),
        ({"layer_types": ["full_attention"]}, "does not list 4 layers"),
        ({"layer_types": ["full_attention"] * 3 + ["mamba9"]}, "mamba9"),
        ({"layer_types": ["sliding_attention"] * 4}, "sliding_window is missing"),
        ({"text_config": 7}, "not an object"),
        ({"model_type": "gemma2"}, "which layers slide"),
        ({"model_type": "qwen3_5"}, "full_attention_interval is missing"),
    ],
)
def test_what_contradicts_itself_is_named(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(UnknownPlanError) as caught:
        read_checkpoint(_folder(tmp_path, DENSE | change))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "max_position_embeddings"]
)
def test_a_missing_field_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownPlanError, match=name):
        read_checkpoint(_folder(tmp_path, _without(DENSE, name)))


def test_a_head_width_that_does_not_divide(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlanError, match="head_dim is missing"):
        read_checkpoint(_folder(tmp_path, _without(DENSE | {"hidden_size": 65}, "head_dim")))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "\x00", "[" * 100_000])
def test_a_file_that_is_no_config(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(UnknownPlanError):
        read_checkpoint(file)


def test_a_file_that_is_not_there_and_one_of_other_bytes(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlanError, match="cannot be read"):
        read_checkpoint(tmp_path / "none.json")
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnknownPlanError, match="not JSON"):
        read_checkpoint(tmp_path / "config.json")


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5) | st.just([]) | st.just({})
)


@given(st.dictionaries(st.sampled_from([*DENSE, *HYBRID["text_config"], "layer_types", "num_experts"]), VALUES))
@settings(max_examples=300, deadline=None)
def test_any_values_give_an_architecture_or_a_reason(changes: dict[str, Any]) -> None:
    for base in (DENSE, SLIDING, HYBRID["text_config"]):
        with contextlib.suppress(UnknownPlanError):
            architecture_of(base | changes)  # type: ignore[operator]
