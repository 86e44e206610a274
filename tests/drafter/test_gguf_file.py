"""A drafter's GGUF file: what is written is what is read, and what redline's guard reads of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drafter.gguf_file import checkpoint_name, gguf_name, tensor_shapes, write_gguf
from drafter.load import read_gguf, trained_block
from drafter.reblock import reblock
from drafter.shape import Shape
from redline.artifacts.headers import read_gguf_metadata
from tests.drafter.conftest import TINY, random_state


def test_what_is_written_is_read(drafter_file: Path) -> None:
    shape, state, ids = read_gguf(drafter_file)
    expected = random_state(TINY)
    assert ids == list(range(0, 512, 2))
    assert (shape.block, shape.taken, shape.mask_token, shape.draft_vocab) == (4, (1, 2), 5, 256)
    assert state.keys() == expected.keys()
    assert all(np.array_equal(state[name], expected[name]) for name in expected)


def test_names_go_both_ways() -> None:
    names = tensor_shapes(TINY)
    assert [checkpoint_name(gguf_name(name)) for name in names] == list(names)
    assert len({gguf_name(name) for name in names}) == len(names)


def test_the_head_holds_the_targets_own_rows(target: Path, drafter_file: Path) -> None:
    from gguf import GGUFReader

    head = next(tensor for tensor in GGUFReader(str(drafter_file)).tensors if tensor.name == "output.weight")
    whole = next(tensor for tensor in GGUFReader(str(target)).tensors if tensor.name == "token_embd.weight")
    assert head.tensor_type == whole.tensor_type
    assert np.array_equal(head.data, whole.data[::2])


def test_without_draft_tokens_the_head_is_the_targets(target: Path, tmp_path: Path) -> None:
    write_gguf(tmp_path / "whole.gguf", TINY, random_state(TINY), target, None)
    assert read_gguf(tmp_path / "whole.gguf")[2] is None


def test_the_guard_reads_its_block(drafter_file: Path) -> None:
    assert read_gguf_metadata(drafter_file, ("dflash.block_size",)) == {"dflash.block_size": 4}


@pytest.mark.parametrize("wrong", [{"top_k": 24}, {"group": 7}, {"rank": 20}])
def test_measures_that_an_engine_refuses(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"top_k|group"):
        Shape(**wrong)  # type: ignore[arg-type]


def test_a_shorter_block_changes_one_key_and_no_weight(drafter_file: Path, tmp_path: Path) -> None:
    reblock(drafter_file, tmp_path / "short.gguf", 3)
    before, after = read_gguf(drafter_file), read_gguf(tmp_path / "short.gguf")
    assert after[0] == replace(before[0], block=3)
    assert all(np.array_equal(before[1][name], after[1][name]) for name in before[1])
    assert after[2] == before[2]
    assert trained_block(tmp_path / "short.gguf") == 4
    reblock(tmp_path / "short.gguf", tmp_path / "whole.gguf", 4)
    assert read_gguf(tmp_path / "whole.gguf")[0] == before[0]


@pytest.mark.parametrize("block", [1, 5])
def test_a_block_that_was_not_trained_is_refused(drafter_file: Path, tmp_path: Path, block: int) -> None:
    with pytest.raises(ValueError, match="between 2 and 4"):
        reblock(drafter_file, tmp_path / "out.gguf", block)
