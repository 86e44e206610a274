"""Sends an answer, and plays what can go wrong on the way. Writes down every write. Knows no API's shape."""

import asyncio
from collections.abc import AsyncIterator

from redline.fake.core import Emission, Job
from redline.fake.http import Response
from redline.fake.scenario import Wire
from redline.fake.shapes import Shape
from redline.fake.text import GARBAGE_LINE
from redline.fake.truth import TruthLog, Write

_STREAM = "text/event-stream; charset=utf-8"


class Sender:
    """One streamed answer."""

    def __init__(self, response: Response, shape: Shape, job: Job, wire: Wire, truth: TruthLog) -> None:
        self._response, self._shape, self._job, self._wire, self._truth = response, shape, job, wire, truth
        self._held: list[bytes] = []  # what a buffering proxy keeps
        self._chunks = 0
        self._silent = 0  # tokens without text, which the next chunk carries
        self.first_token_ns: int | None = None
        self.last_token_ns: int | None = None

    async def stream(self, parts: AsyncIterator[Emission], *, closes_without_end: bool) -> None:
        """Send the parts as they come, then the end.

        Raises:
            Gone: the client has left.
        """
        kept: list[Emission] = []
        async for part in parts:
            kept.append(part)
            # The first token is never kept back: vLLM 0.33.0 vllm/v1/engine/output_processor.py, stream_interval.
            if self.first_token_ns is None or sum(item.tokens for item in kept) >= self._wire.stream_interval:
                self._send_parts(kept)
                kept = []
            if self._cut_now():
                return
            if self._wire.hang == "mid_stream" and self._chunks >= 3:
                await self._response.until_gone()
        self._send_parts(kept)
        if not self._response.started:
            self._begin()
        if closes_without_end:
            self._response.cut()
            return
        while self._wire.endless:
            self._send_parts([Emission(kind="content", text=GARBAGE_LINE, tokens=1)])
            await asyncio.sleep(0.01)
        for data in self._shape.tail(self._job, usage=self._wire.usage != "missing"):
            self._write(data, kind="usage")
        if self._held:
            self._flush()
        before, after = self._response.end()
        self._truth.add(Write(request=self._job.number, event="end", before_ns=before, after_ns=after))

    def _begin(self) -> None:
        if not self._wire.buffered:
            before, after = self._response.begin(_STREAM)
            self._truth.add(Write(request=self._job.number, event="head", before_ns=before, after_ns=after))
        for data in self._shape.head():
            self._write(data)

    def _send_parts(self, parts: list[Emission]) -> None:
        """Send kept parts, neighbours of one kind as one chunk; parts without text wait for the next with some."""
        for group in _groups(parts):
            text, number = "".join(part.text for part in group), sum(part.tokens for part in group) + self._silent
            name = next((part.name for part in group if part.name), None)
            if not text and name is None:
                self._silent = number
                continue
            self._silent = 0
            if not self._response.started and not self._held:
                self._begin()
            whole = Emission(kind=group[0].kind, text=text, tokens=number, call=group[0].call, name=name)
            self._write(self._shape.part(whole), part=whole)
            self._chunks += 1

    def _write(self, data: bytes, *, part: Emission | None = None, kind: str = "none") -> None:
        if self._wire.buffered:
            self._held.append(data)
            return
        before, after = self._response.piece(data)
        if part is not None:
            self.first_token_ns = self.first_token_ns or before
            self.last_token_ns = after
        self._truth.add(
            Write(
                request=self._job.number,
                event="chunk",
                before_ns=before,
                after_ns=after,
                kind=part.kind if part else kind,  # type: ignore[arg-type]
                tokens=part.tokens if part else 0,
                characters=len(part.text) if part else 0,
            )
        )

    def _flush(self) -> None:
        self._response.begin(_STREAM)
        before, after = self._response.piece(b"".join(self._held))
        self.first_token_ns, self.last_token_ns = before, after
        self._truth.add(
            Write(
                request=self._job.number,
                event="chunk",
                before_ns=before,
                after_ns=after,
                kind="content",
                tokens=self._job.made_tokens,
            )
        )

    def _cut_now(self) -> bool:
        if self._wire.cut_after_chunks is None or self._chunks < self._wire.cut_after_chunks:
            return False
        self._response.cut()
        return True


def _groups(parts: list[Emission]) -> list[list[Emission]]:
    groups: list[list[Emission]] = []
    for part in parts:
        last = groups[-1][-1] if groups else None
        if last is not None and (last.kind, last.call) == (part.kind, part.call):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups
