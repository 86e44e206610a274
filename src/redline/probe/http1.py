"""A captured HTTP/1.1 response taken apart: status, headers, and every body byte with the time it arrived."""

from bisect import bisect_left
from dataclasses import dataclass

from redline.probe.wire import Segment


class HttpError(ValueError):
    """The bytes are no HTTP/1.1 response."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response; `complete` is False when the body ended before its announced end."""

    status: int
    headers: dict[str, str]
    headers_ns: int
    body: bytes
    complete: bool
    _raw_ends: tuple[int, ...]
    _body_ends: tuple[int, ...]
    _segment_ends: tuple[int, ...]
    _stamps: tuple[int, ...]

    def arrival_ns(self, body_end: int) -> int:
        """Return when the body's byte before index `body_end` had arrived."""
        piece = bisect_left(self._body_ends, body_end)
        raw_end = self._raw_ends[piece] - (self._body_ends[piece] - body_end)
        return self._stamps[bisect_left(self._segment_ends, raw_end)]


def parse_response(segments: tuple[Segment, ...]) -> Response:
    """Return the response held by the segments.

    Raises:
        HttpError: no complete head, or a chunk size that is no number.
    """
    raw = b"".join(segment.data for segment in segments)
    head_end = raw.find(b"\r\n\r\n")
    if head_end < 0 or not raw.startswith(b"HTTP/1."):
        raise HttpError(f"not an HTTP response: {raw[:80]!r}")
    lines = raw[:head_end].decode("latin-1").split("\r\n")
    words = lines[0].split(" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        raise HttpError(f"no status in {lines[0]!r}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body_start = head_end + 4
    chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    pieces, complete = _dechunk(raw, body_start) if chunked else ([(body_start, len(raw))], True)
    length = headers.get("content-length", "")
    if not chunked and length.isdigit():
        complete = len(raw) - body_start >= int(length)
    segment_ends, total = [], 0
    for segment in segments:
        total += len(segment.data)
        segment_ends.append(total)
    body_ends, filled = [], 0
    for start, end in pieces:
        filled += end - start
        body_ends.append(filled)
    stamps = tuple(segment.at_ns for segment in segments)
    return Response(
        status=int(words[1]),
        headers=headers,
        headers_ns=stamps[bisect_left(segment_ends, body_start)],
        body=b"".join(raw[start:end] for start, end in pieces),
        complete=complete,
        _raw_ends=tuple(end for _, end in pieces),
        _body_ends=tuple(body_ends),
        _segment_ends=tuple(segment_ends),
        _stamps=stamps,
    )


def _dechunk(raw: bytes, position: int) -> tuple[list[tuple[int, int]], bool]:
    pieces: list[tuple[int, int]] = []
    while True:
        line_end = raw.find(b"\r\n", position)
        if line_end < 0:
            return pieces, False
        try:
            size = int(raw[position:line_end].split(b";")[0], 16)
        except ValueError:
            raise HttpError(f"chunk size {raw[position:line_end][:20]!r} is no number") from None
        if size == 0:
            return pieces, True
        start = line_end + 2
        end = min(start + size, len(raw))
        pieces.append((start, end))
        if end < start + size:
            return pieces, False
        position = end + 2
