"""A picture with facts that nobody can dispute: a red circle, a blue square, a green triangle and a number.

Drawn here pixel by pixel and written as PNG with the standard library, so that the same bytes come out everywhere and
no picture has a licence. Knows no model; `facts_seen` reads an answer.
"""

import base64
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

Colour = tuple[int, int, int]
Inside = Callable[[float, float], bool]

WHITE: Final[Colour] = (255, 255, 255)
BLACK: Final[Colour] = (0, 0, 0)
RED: Final[Colour] = (220, 20, 20)
BLUE: Final[Colour] = (20, 60, 220)
GREEN: Final[Colour] = (20, 150, 40)
SIZE: Final = 448
QUESTION: Final = (
    "This picture shows three shapes and a number. Name each shape with its colour, and say what the number is."
)
_CLAUSE_END: Final = re.compile(r"[,.;\n]|\band\b")
_ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# Seven segments, clockwise from the top, the middle one last.
_SEGMENTS: Final = {
    "0": "ABCDEF",
    "1": "BC",
    "2": "ABGED",
    "3": "ABGCD",
    "4": "FGBC",
    "5": "AFGCD",
    "6": "AFGECD",
    "7": "ABC",
    "8": "ABCDEFG",
    "9": "ABCDFG",
}


@dataclass(frozen=True, slots=True)
class FactImage:
    """A picture as PNG, and what it shows: pairs of colour and shape, and the number."""

    png: bytes
    width: int
    height: int
    shapes: tuple[tuple[str, str], ...]
    number: int

    @property
    def data_url(self) -> str:
        """The picture as a chat request takes it."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()

    def messages(self, question: str = QUESTION) -> tuple[dict[str, object], ...]:
        """Return the chat that shows the picture and asks."""
        picture = {"type": "image_url", "image_url": {"url": self.data_url}}
        return ({"role": "user", "content": [picture, {"type": "text", "text": question}]},)


@lru_cache(maxsize=4)
def fact_image(number: int = 47, size: int = SIZE) -> FactImage:
    """Return the picture: one thing in each quarter, the number below on the right.

    Raises:
        ValueError: a number outside 0 to 99, or fewer than 64 pixels a side.
    """
    if not 0 <= number <= 99 or size < 64:
        raise ValueError("the picture holds a number of 0 to 99 on 64 pixels a side or more")
    things: list[tuple[Colour, Inside]] = [
        (RED, lambda x, y: (x - 0.25) ** 2 + (y - 0.25) ** 2 < 0.17**2),
        (BLUE, lambda x, y: abs(x - 0.75) < 0.16 and abs(y - 0.25) < 0.16),
        (GREEN, lambda x, y: 0.58 < y < 0.92 and abs(x - 0.25) < (y - 0.58) / 2),
        (BLACK, _digits(str(number), 0.75, 0.75, 0.30)),
    ]
    rows = []
    for row in range(size):
        y = (row + 0.5) / size
        pixels = (_colour_at((column + 0.5) / size, y, things) for column in range(size))
        rows.append(b"".join(bytes(pixel) for pixel in pixels))
    shapes = (("red", "circle"), ("blue", "square"), ("green", "triangle"))
    words = ", ".join(f"a {colour} {shape}" for colour, shape in shapes) + f" and the number {number}"
    return FactImage(encode_png(rows, size, words), size, size, shapes, number)


def facts_seen(image: FactImage, answer: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which facts an answer states and which it lacks, as 'red circle' and the like, the number last.

    A shape counts where its colour stands in one clause with it and no other shape is nearer. In a clause without
    shapes, as in a list of properties, the colour may belong to the last one before or the first one after, four words
    away at most.
    """
    names = [shape for _, shape in image.shapes]
    clauses = [re.findall(r"[a-z]+|\d+", clause) for clause in _CLAUSE_END.split(answer.lower())]
    words = [word for clause in clauses for word in clause]
    pairs: set[tuple[str, str]] = set()
    for colour, _ in image.shapes:
        for clause in clauses:
            if any(name in clause for name in names):
                nearest = [_nearest(clause, at, names, len(clause))[:1] for at in _places(clause, colour)]
            elif colour in clause:
                nearest = [_on_both_sides(words, at, names) for at in _places(words, colour)]
            else:
                continue
            pairs |= {(colour, name) for found in nearest for name in found}
    stated = {f"{colour} {shape}": (colour, shape) in pairs for colour, shape in image.shapes}
    number = str(image.number)
    stated[number] = number in words or f" {_spelled(image.number)} " in f" {' '.join(words)} "
    seen, missing = ([fact for fact, found in stated.items() if found is wanted] for wanted in (True, False))
    return tuple(seen), tuple(missing)


def encode_png(rows: Sequence[bytes], width: int, description: str = "") -> bytes:
    """Return rows of red, green and blue bytes as a PNG of 8 bits a channel (W3C PNG, third edition).

    A description goes into a text chunk (11.3.3.2), which no model sees: the fake engine, which sees no pixels, reads
    it, and so tells a server that hands pictures on from one that drops them.
    """

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\x00" + row for row in rows), 9)
    text = block(b"tEXt", b"Description\x00" + description.encode("latin-1")) if description else b""
    return b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + text + block(b"IDAT", data) + block(b"IEND", b"")


def _colour_at(x: float, y: float, things: Sequence[tuple[Colour, Inside]]) -> Colour:
    return next((colour for colour, inside in things if inside(x, y)), WHITE)


def _digits(text: str, centre_x: float, centre_y: float, height: float) -> Inside:
    """Seven-segment digits about a centre, each half as wide as high."""
    width, thick, gap = height / 2, height / 7, height / 5
    left = centre_x - (len(text) * width + (len(text) - 1) * gap) / 2
    top = centre_y - height / 2
    middle = top + height / 2
    boxes: list[tuple[float, float, float, float]] = []
    for index, digit in enumerate(text):
        x = left + index * (width + gap)
        places = {
            "A": (x, top, x + width, top + thick),
            "B": (x + width - thick, top, x + width, middle),
            "C": (x + width - thick, middle, x + width, top + height),
            "D": (x, top + height - thick, x + width, top + height),
            "E": (x, middle, x + thick, top + height),
            "F": (x, top, x + thick, middle),
            "G": (x, middle - thick / 2, x + width, middle + thick / 2),
        }
        boxes += [places[segment] for segment in _SEGMENTS[digit]]
    return lambda x, y: any(x0 <= x < x1 and y0 <= y < y1 for x0, y0, x1, y1 in boxes)


def _places(words: Sequence[str], word: str) -> list[int]:
    return [index for index, other in enumerate(words) if other == word]


def _nearest(words: Sequence[str], at: int, names: Sequence[str], reach: int) -> list[str]:
    """The names nearest to a place, at most two; the one that follows first, as adjectives stand in English."""
    for distance in range(1, reach + 1):
        near = [words[index] for index in (at + distance, at - distance) if 0 <= index < len(words)]
        if found := [word for word in near if word in names]:
            return found
    return []


def _on_both_sides(words: Sequence[str], at: int, names: Sequence[str]) -> list[str]:
    before = [word for word in words[max(0, at - 4) : at] if word in names]
    return before[-1:] + [word for word in words[at + 1 : at + 5] if word in names][:1]


def _spelled(number: int) -> str:
    if number < 20:
        return _ONES[number]
    tens = _TENS[number // 10 - 2]
    return tens if number % 10 == 0 else f"{tens} {_ONES[number % 10]}"
