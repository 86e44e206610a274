"""The picture of facts, decoded again pixel by pixel, and the reading of answers about it."""

import base64
import struct
import zlib

import pytest

from redline.workload.images import BLACK, BLUE, GREEN, RED, WHITE, Colour, encode_png, fact_image, facts_seen


def decoded(png: bytes) -> tuple[int, int, list[bytes]]:
    """Read an 8-bit colour PNG without filters: width, height and rows; every checksum is checked."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, size = 8, b"", (0, 0)
    kinds = []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        kinds.append(kind)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
            assert body[8:] == b"\x08\x02\x00\x00\x00"
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    assert [kind for kind in kinds if kind != b"tEXt"] == [b"IHDR", b"IDAT", b"IEND"]
    raw, stride = zlib.decompress(data), 3 * size[0] + 1
    rows = [raw[start : start + stride] for start in range(0, len(raw), stride)]
    assert all(row[0] == 0 for row in rows)
    return size[0], size[1], [row[1:] for row in rows]


def colours(rows: list[bytes], size: int, left: float, top: float) -> dict[Colour, int]:
    """Count the colours of the quarter that begins there."""
    found: dict[Colour, int] = {}
    for row in rows[int(top * size) : int((top + 0.5) * size)]:
        for column in range(int(left * size), int((left + 0.5) * size)):
            colour = (row[3 * column], row[3 * column + 1], row[3 * column + 2])
            found[colour] = found.get(colour, 0) + 1
    return found


@pytest.mark.parametrize("size", [96, 224])
def test_each_quarter_shows_its_thing_and_nothing_else(size: int) -> None:
    width, height, rows = decoded(fact_image(47, size).png)
    assert (width, height, len(rows)) == (size, size, size)
    areas = {}
    for colour, left, top in ((RED, 0.0, 0.0), (BLUE, 0.5, 0.0), (GREEN, 0.0, 0.5), (BLACK, 0.5, 0.5)):
        found = colours(rows, size, left, top)
        assert set(found) == {colour, WHITE}
        areas[colour] = found[colour] / size**2
    assert areas[RED] == pytest.approx(3.14159 * 0.17**2, rel=0.03)
    assert areas[BLUE] == pytest.approx(0.32**2, rel=0.05)
    assert areas[GREEN] == pytest.approx(0.34 * 0.34 / 2, rel=0.05)


def test_the_picture_is_the_same_bytes_and_follows_its_number() -> None:
    assert fact_image(47, 96).png == fact_image(47, 96).png
    assert len({fact_image(number, 64).png for number in range(0, 100, 7)}) == 15
    assert (
        base64.b64decode(fact_image(47, 96).data_url.removeprefix("data:image/png;base64,")) == fact_image(47, 96).png
    )


def test_what_is_encoded_is_decoded() -> None:
    rows = [bytes(range(start, start + 12)) for start in (0, 50, 100)]
    assert decoded(encode_png(rows, 4)) == (4, 3, rows)


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("There is a red circle, a blue square, a green triangle, and the number 47.", ()),
        ("A circle (red), a square that is blue, and a triangle in green; forty-seven.", ()),
        ("The circle is red and the square is blue and the triangle is green. The number is 47", ()),
        ("- Shape: circle\n- Color: red\n- Shape: square\n- Color: blue\n- Triangle: green\n- Number: 47", ()),
        ("A blue circle, a red square, a green triangle, and 47.", ("red circle", "blue square")),
        ("A red circle, a blue square, a green triangle, and 470.", ("47",)),
        ("A circle, a square, a triangle and 47 in red, blue and green.", ("red circle", "blue square")),
        ("I see nothing.", ("red circle", "blue square", "green triangle", "47")),
        ("", ("red circle", "blue square", "green triangle", "47")),
    ],
)
def test_which_facts_an_answer_states(answer: str, missing: tuple[str, ...]) -> None:
    seen, lacking = facts_seen(fact_image(47, 64), answer)
    assert lacking == missing or (missing and set(missing) <= set(lacking))
    assert set(seen) | set(lacking) == {"red circle", "blue square", "green triangle", "47"}


def test_a_picture_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 99"):
        fact_image(100)
