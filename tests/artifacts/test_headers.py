"""Headers of checkpoints, made here byte by byte and read back; and what a torn one is told."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.artifacts.headers import (
    HeaderError,
    read_config,
    read_gguf_metadata,
    read_safetensors_header,
    read_shards,
)


def safetensors_bytes(tensors: dict[str, int]) -> bytes:
    """A safetensors file of tensors of so many bytes each."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


def gguf_bytes(values: dict[str, Any]) -> bytes:
    """A GGUF file of version 3 with these keys and no tensors."""
    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(values))
    for name, value in values.items():
        out += struct.pack("<Q", len(name)) + name.encode()
        if isinstance(value, bool):
            out += struct.pack("<I?", 7, value)
        elif isinstance(value, int):
            out += struct.pack("<II", 4, value)
        elif isinstance(value, str):
            out += struct.pack("<IQ", 8, len(value.encode())) + value.encode()
        elif value and isinstance(value[0], str):
            out += struct.pack("<IIQ", 9, 8, len(value))
            out += b"".join(struct.pack("<Q", len(item)) + item.encode() for item in value)
        else:
            out += struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
    return out


@given(st.dictionaries(st.text("abc.", min_size=1, max_size=8), st.integers(0, 4096), max_size=5))
def test_safetensors_file_claims_its_own_size(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, int]
) -> None:
    path = tmp_path_factory.mktemp("st") / "model.safetensors"
    data = safetensors_bytes(tensors)
    path.write_bytes(data)
    header = read_safetensors_header(path)
    assert (set(header.tensors), header.file_bytes) == (set(tensors), len(data))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 100) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 7) + b'{"a":1}',
    ],
)
def test_what_is_no_safetensors_file_is_told_so(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(HeaderError, match=r"x\.safetensors"):
        read_safetensors_header(path)


def test_gguf_keys_before_and_after_arrays(tmp_path: Path) -> None:
    path = tmp_path / "draft.gguf"
    path.write_bytes(
        gguf_bytes(
            {
                "general.architecture": "dflash",
                "tokenizer.ggml.tokens": ["a", "bc", ""],
                "dflash.target_layers": [1, 16, 31],
                "dflash.block_size": 16,
                "flag": True,
            }
        )
    )
    found = read_gguf_metadata(path, ("general.architecture", "dflash.block_size", "dflash.target_layers", "absent"))
    assert found == {"general.architecture": "dflash", "dflash.block_size": 16, "dflash.target_layers": None}


@pytest.mark.parametrize("cut", [3, 10, 30, 60])
def test_torn_gguf_is_told_so(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "draft.gguf"
    path.write_bytes(gguf_bytes({"general.architecture": "dflash", "dflash.block_size": 8})[:cut])
    with pytest.raises(HeaderError):
        read_gguf_metadata(path, ("dflash.block_size",))


def test_gguf_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "draft.gguf"
    path.write_bytes(b"GGML" + bytes(40))
    with pytest.raises(HeaderError, match="no GGUF"):
        read_gguf_metadata(path, ("a",))


def test_shards_by_index_and_without(tmp_path: Path) -> None:
    assert read_shards(tmp_path) == ("model.safetensors",)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"b": "2.safetensors", "a": "1.safetensors", "c": "1.safetensors"}}))
    assert read_shards(tmp_path) == ("1.safetensors", "2.safetensors")
    index.write_text("[]")
    with pytest.raises(HeaderError):
        read_shards(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "{", '"x"'])
def test_config_that_is_none(tmp_path: Path, text: str) -> None:
    assert read_config(tmp_path) is None
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(HeaderError):
        read_config(tmp_path)
