"""Answers in the shape of Anthropic's messages API, which both engines offer at `/v1/messages`."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from redline.fake.core import Emission, Job
from redline.fake.shapes import joined, whole_calls

_STOP: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_BLOCKS: Final[dict[str, dict[str, Any]]] = {
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
    "content": {"type": "text", "text": ""},
}


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\n".encode() + b"data: " + json.dumps(data, separators=(",", ":")).encode() + b"\n\n"


@dataclass(slots=True, kw_only=True)
class MessagesShape:
    """`/v1/messages`. Blocks open and close as the kind of what is said changes, so a stream has state."""

    id: str
    model: str
    job: Job
    _open: tuple[str, int] | None = None
    _index: int = field(default=-1)

    def head(self) -> list[bytes]:
        """See `shapes.Shape`."""
        message = self._message([], None)
        message["usage"] = {**self._usage(0)}
        return [_event({"type": "message_start", "message": message})]

    def part(self, emission: Emission) -> bytes:
        """See `shapes.Shape`."""
        data = b""
        if self._open != (emission.kind, emission.call):
            data += self._close()
            self._open = (emission.kind, emission.call)
            self._index += 1
            block = _BLOCKS.get(emission.kind) or {
                "type": "tool_use",
                "id": f"toolu_{self.id[-8:]}_{emission.call}",
                "name": emission.name or "",
                "input": {},
            }
            data += _event({"type": "content_block_start", "index": self._index, "content_block": block})
        match emission.kind:
            case "reasoning":
                delta = {"type": "thinking_delta", "thinking": emission.text}
            case "content":
                delta = {"type": "text_delta", "text": emission.text}
            case _:
                delta = {"type": "input_json_delta", "partial_json": emission.text}
        return data + _event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def tail(self, job: Job, *, usage: bool) -> list[bytes]:
        """See `shapes.Shape`."""
        delta = {"stop_reason": _STOP[job.finish_reason], "stop_sequence": None}
        closing = {"type": "message_delta", "delta": delta}
        if usage:
            closing["usage"] = {"output_tokens": job.made_tokens}
        last = [_event(closing), _event({"type": "message_stop"})]
        closed = self._close()
        return [closed, *last] if closed else last

    def whole(self, job: Job, parts: Sequence[Emission], *, usage: bool) -> dict[str, Any]:
        """See `shapes.Shape`."""
        blocks: list[dict[str, Any]] = []
        if thinking := joined(parts, "reasoning"):
            blocks.append({**_BLOCKS["reasoning"], "thinking": thinking})
        if text := joined(parts, "content"):
            blocks.append({"type": "text", "text": text})
        for index, call in enumerate(whole_calls(parts)):
            arguments = json.loads(call["arguments"] or "{}")
            blocks.append(
                {"type": "tool_use", "id": f"toolu_{self.id[-8:]}_{index}", "name": call["name"], "input": arguments}
            )
        message = self._message(blocks, _STOP[job.finish_reason])
        return {**message, "usage": self._usage(job.made_tokens)} if usage else message

    def _message(self, blocks: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "model": self.model,
            "stop_reason": reason,
            "stop_sequence": None,
        }

    def _usage(self, made: int) -> dict[str, int]:
        cached = self.job.cached_tokens
        return {
            "cache_read_input_tokens": cached,
            "input_tokens": self.job.prompt_tokens - cached,
            "output_tokens": made,
        }

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return _event({"type": "content_block_stop", "index": self._index})
