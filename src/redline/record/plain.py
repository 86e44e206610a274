"""Makes text from elsewhere harmless to look at: no terminal escapes, no invisible or reordering marks, bounded length.

Knows nothing of HTML or Markdown; each renderer escapes for its own form.
"""

import re
import unicodedata
from typing import Final

# CSI and OSC sequences first (ECMA-48), so that their letters go with them; then any other escape.
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-_]?|\x9b[0-?]{0,64}[@-~]?"
)
MAX_LINE: Final = 2_000
MAX_TEXT: Final = 20_000


def plain_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return text without escapes, controls (but newline and tab) and format characters, cut at `limit` characters.

    What was cut is said at the end. Bidirectional overrides are format characters: they can make a log line read
    as another (CVE-2021-42574).
    """
    bounded = text[: limit * 4]  # an escape may hide at most what is cut anyway; keeps the work linear in `limit`
    cleaned = _ESCAPES.sub("", bounded).replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(character for character in cleaned if _visible(character))
    if len(kept) <= limit and len(bounded) == len(text):
        return kept
    left_out = max(0, len(kept) - limit) + len(text) - len(bounded)
    return f"{kept[:limit]} ... {left_out} more characters"


def plain_line(text: str, limit: int = MAX_LINE) -> str:
    """Return text on one line, as `plain_text` cleans it."""
    return " ".join(plain_text(text, limit).split())


def _visible(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn")
