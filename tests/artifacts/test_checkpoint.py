"""A GGUF file as a checkpoint folder: order of rows, rounding, names."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.artifacts.checkpoint import _bfloat16, _name, _unpermuted
from redline.errors import FaultError


def permuted(values: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's converter does to query and key weights (LlamaModel.permute)."""
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


@given(heads=st.integers(1, 9), half=st.integers(1, 8), columns=st.integers(1, 5))
def test_the_order_of_rows_is_undone(heads: int, half: int, columns: int) -> None:
    values = np.arange(heads * 2 * half * columns, dtype=np.float32).reshape(heads * 2 * half, columns)
    assert (_unpermuted(permuted(values, heads), heads) == values).all()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_bfloat16_is_the_nearest(value: float) -> None:
    (bits,) = struct.unpack("<H", _bfloat16(np.array([value], dtype=np.float32)))
    (back,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    steps = [struct.unpack("<f", struct.pack("<I", ((bits + step) & 0xFFFF) << 16))[0] for step in (-1, 1)]
    assert all(abs(back - value) <= abs(other - value) or not np.isfinite(other) for other in steps)


def test_names() -> None:
    assert _name("blk.7.attn_q.weight") == "model.layers.7.self_attn.q_proj.weight"
    assert _name("token_embd.weight") == "model.embed_tokens.weight"
    with pytest.raises(FaultError):
        _name("blk.0.ssm_in.weight")
