"""Bytes of a log into lines that can be searched: whatever an engine, a terminal or a container left in them.

A line ends at a line feed or at a carriage return, since progress bars use the latter. Bytes that are no UTF-8 are
replaced, terminal codes removed, and of a line that is too long only its beginning is kept.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024
_ENDS: Final = re.compile(rb"[\r\n]+")
_TERMINAL_CODES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a log that arrives in pieces; memory stays within a piece and the longest line kept."""
    pending, skipping = b"", False
    for chunk in chunks:
        *whole, rest = _ENDS.split(chunk)
        for part in whole:
            if not skipping:
                yield _clean(pending + part)
            pending, skipping = b"", False
        if skipping:
            continue
        pending += rest
        if len(pending) > MAX_LINE_BYTES:
            yield _clean(pending)
            pending, skipping = b"", True  # the rest of this line is not wanted
    if pending:
        yield _clean(pending)


def _clean(line: bytes) -> str:
    text = line[:MAX_LINE_BYTES].decode("utf-8", errors="replace").replace("\0", "")
    return _TERMINAL_CODES.sub("", text)
