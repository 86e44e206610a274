"""Text into tokens and back. A token is up to four characters of a word, with the space before it, or white space.

The rule is simple on purpose: any test can count tokens for itself. Ids are hashes of the piece, so they are the same
in every process; turning ids back into text needs a tokenizer that has seen the pieces.
"""

import re
import zlib
from collections.abc import Iterable
from typing import Final

_PIECE: Final = re.compile(r" ?[^\s]{1,4}|\s")
VOCABULARY: Final = 151_936


def pieces(text: str) -> list[str]:
    """Return the tokens of a text; joined they are the text again."""
    return _PIECE.findall(text)


def count(text: str) -> int:
    """Return how many tokens a text has."""
    return len(_PIECE.findall(text))


class Tokenizer:
    """Gives ids to pieces and remembers them."""

    def __init__(self) -> None:
        self._pieces: dict[int, str] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ids = []
        for piece in pieces(text):
            number = zlib.crc32(piece.encode()) % VOCABULARY
            self._pieces[number] = piece
            ids.append(number)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids that were given out before; an unknown id is a question mark."""
        return "".join(self._pieces.get(number, "?") for number in ids)
