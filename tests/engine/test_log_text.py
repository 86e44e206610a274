"""Bytes into lines: nothing lost that matters, nothing kept that hurts."""

from hypothesis import given
from hypothesis import strategies as st

from redline.engine.log_text import MAX_LINE_BYTES, split_lines

_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0\x1b"), min_size=1, max_size=40)


@given(st.lists(_WORDS, max_size=8), st.lists(st.integers(1, 30), max_size=20), st.sampled_from(["\n", "\r\n", "\r"]))
def test_however_the_pieces_fall_the_lines_are_the_same(lines: list[str], sizes: list[int], end: str) -> None:
    data = end.join(lines).encode()
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    pieces.append(data[at:])
    assert [line for line in split_lines(pieces) if line] == lines


@given(st.binary(max_size=400))
def test_any_bytes_become_text(data: bytes) -> None:
    for line in split_lines([data]):
        line.encode()
        assert "\0" not in line
        assert "\n" not in line


def test_of_a_huge_line_the_beginning_is_kept_and_the_next_line_is_whole() -> None:
    chunks = [b"begin", *[b"x" * 100_000] * 100, b"end\nnext line\n"]
    assert [line[:9] for line in split_lines(chunks)] == ["beginxxxx", "next line"]
    assert all(len(line) <= MAX_LINE_BYTES for line in split_lines(chunks))


def test_progress_bars_and_colours() -> None:
    text = b"10%\r50%\r100%\r\n\x1b[1;36m(EngineCore)\x1b[0;0m ERROR\n"
    assert list(split_lines([text])) == ["10%", "50%", "100%", "(EngineCore) ERROR"]
