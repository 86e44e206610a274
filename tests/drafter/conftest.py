"""A tiny target and a drafter of random weights for it."""

from pathlib import Path
from typing import Any

import pytest

from drafter.gguf_file import tensor_shapes, write_gguf
from drafter.shape import Shape
from drafter.tiny import write_tiny_target

TINY = Shape(
    layers=2, block=4, rank=32, top_k=8, draft_vocab=256, window=64, taken=(1, 2), hidden=96, heads=3, kv_heads=1,
    head_dim=32, ffn=192, vocab=512, rope_base=10000.0,
)  # fmt: skip


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama GGUF file of random weights."""
    path = tmp_path_factory.mktemp("target") / "target.gguf"
    write_tiny_target(path)
    return path


def random_state(shape: Shape) -> dict[str, Any]:
    """Random weights by checkpoint name."""
    import numpy as np

    rng = np.random.default_rng(5)
    return {name: rng.standard_normal(size).astype("float32") * 0.05 for name, size in tensor_shapes(shape).items()}


@pytest.fixture
def drafter_file(target: Path, tmp_path: Path) -> Path:
    """A drafter's GGUF file with float32 matrices."""
    path = tmp_path / "draft.gguf"
    kinds = {"matrix_type": "F32", "codebook_type": "F32"}
    write_gguf(path, TINY, random_state(TINY), target, list(range(0, 512, 2)), **kinds)
    return path
