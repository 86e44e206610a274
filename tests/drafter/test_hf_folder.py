"""The Hugging Face folder that comes of a drafter's GGUF file."""

import json
from pathlib import Path

import numpy as np
import pytest

import redline.artifacts
from drafter.hf_folder import bfloat16_bytes, write_folder
from redline.artifacts.headers import read_gguf_metadata, read_safetensors_header
from tests.drafter.conftest import TINY, random_state


def test_it_is_whole_and_twice_the_same(drafter_file: Path, tmp_path: Path) -> None:
    first, second = write_folder(drafter_file, tmp_path / "a"), write_folder(drafter_file, tmp_path / "b")
    header = read_safetensors_header(tmp_path / "a" / "model.safetensors")
    assert first == second
    assert header.file_bytes == (tmp_path / "a" / "model.safetensors").stat().st_size
    assert set(header.tensors) == set(random_state(TINY))
    assert not {"lm_head.weight", "d2t", "embed_tokens.weight"} & set(header.tensors)


def test_its_config_says_what_vllm_asks(drafter_file: Path, tmp_path: Path) -> None:
    write_folder(drafter_file, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    draft = config["dflash_config"]
    assert config["architectures"] == ["DFlash2DraftModel"]
    assert config["is_causal"] is False
    assert config["layer_types"] == ["sliding_attention"] * 2
    # llama.cpp's layers 1 and 2 are read at their inputs, vLLM's 0 and 1 at their outputs: the same states.
    assert (draft["block_size"], draft["target_layer_ids"], draft["mask_token_id"]) == (4, [0, 1], 5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, 0x3F80), (-2.0, 0xC000), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (1 + 2**-8 + 2**-20, 0x3F81)],
)
def test_bfloat16_rounds_to_nearest_and_ties_to_even(value: float, expected: int) -> None:
    assert int.from_bytes(bfloat16_bytes(np.array([value])), "little") == expected


def test_the_shipped_drafters_folder_is_the_pinned_one(tmp_path: Path) -> None:
    # The hash of docs/drafter.md: what vLLM gets is the same wherever it is made.
    shipped = Path(redline.artifacts.__file__).parent / "data" / "SmolLM2-135M-Instruct.DFlash2.Q4_0.gguf"
    assert write_folder(shipped, tmp_path) == "49ae10f13dafec4e9ddbb06df4fa9a6e39d1a9dd689bbda11ce2844908e5fd51"
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    assert config["dflash_config"]["block_size"] == 8  # as trained; the GGUF file's own is what llama.cpp serves
    assert read_gguf_metadata(shipped, ("dflash.block_size",)) == {"dflash.block_size": 4}
    assert config["dflash_config"]["target_layer_ids"] == [1, 10, 19, 28]
