"""Answers in the shapes of OpenAI's chat and completion API, as the two engines write them. Knows no timing.

A shape turns emissions into server-sent events, or all of them into one body. What the engines do differently is in
`Style`; the Anthropic shape is in `anthropic.py`.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redline.fake.core import Emission, Job


class Style(Protocol):
    """How an engine words what both engines say."""

    role_content: str | None

    @property
    def reasoning_field(self) -> str:
        """The field that carries reasoning."""

    def envelope(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return a body or chunk with the fields that this engine adds to every one."""

    def choice(self, data: dict[str, Any], *, last: bool) -> dict[str, Any]:
        """Return a streamed choice with the fields that this engine adds."""

    def usage(self, job: Job) -> dict[str, Any]:
        """Return the token counts."""

    def extras(self, job: Job) -> dict[str, Any]:
        """Return what this engine adds next to the token counts: timings, drafting."""


class Shape(Protocol):
    """One API's form of an answer."""

    def head(self) -> list[bytes]:
        """Return the events before the first token."""

    def part(self, emission: Emission) -> bytes:
        """Return the event for a part of the answer."""

    def tail(self, job: Job, *, usage: bool) -> list[bytes]:
        """Return the events after the last token."""

    def whole(self, job: Job, parts: Sequence[Emission], *, usage: bool) -> dict[str, Any]:
        """Return the body of an answer that is not streamed."""


def event(data: Any) -> bytes:
    """Return a server-sent event with JSON in it."""
    return b"data: " + json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatShape:
    """`/v1/chat/completions`."""

    style: Style
    id: str
    model: str
    usage_asked: bool

    def head(self) -> list[bytes]:
        """See `Shape`."""
        return [self._chunk({"delta": {"role": "assistant", "content": self.style.role_content}})]

    def part(self, emission: Emission) -> bytes:
        """See `Shape`."""
        return self._chunk({"delta": self._delta(emission)})

    def tail(self, job: Job, *, usage: bool) -> list[bytes]:
        """See `Shape`."""
        events = [self._chunk({"delta": {}, "finish_reason": job.finish_reason}, last=True)]
        if usage and self.usage_asked:
            extra = {"choices": [], "usage": self.style.usage(job), **self.style.extras(job)}
            events.append(event(self.style.envelope({**self._base("chat.completion.chunk"), **extra})))
        return [*events, DONE]

    def whole(self, job: Job, parts: Sequence[Emission], *, usage: bool) -> dict[str, Any]:
        """See `Shape`."""
        calls = whole_calls(parts)
        message: dict[str, Any] = {"role": "assistant", "content": joined(parts, "content") or (None if calls else "")}
        if reasoning := joined(parts, "reasoning"):
            message[self.style.reasoning_field] = reasoning
        if calls:
            message["tool_calls"] = [
                {"id": f"call_{self.id[-8:]}_{index}", "type": "function", "function": call}
                for index, call in enumerate(calls)
            ]
        choice = self.style.choice({"index": 0, "message": message, "finish_reason": job.finish_reason}, last=True)
        body = {**self._base("chat.completion"), "choices": [choice]}
        if usage:
            body |= {"usage": self.style.usage(job), **self.style.extras(job)}
        return self.style.envelope(body)

    def _delta(self, emission: Emission) -> dict[str, Any]:
        if emission.kind == "reasoning":
            return {self.style.reasoning_field: emission.text}
        if emission.kind == "content":
            return {"content": emission.text}
        call: dict[str, Any] = {"index": emission.call, "function": {"arguments": emission.text}}
        if emission.name is not None:
            call |= {"id": f"call_{self.id[-8:]}_{emission.call}", "type": "function"}
            call["function"]["name"] = emission.name
        return {"tool_calls": [call]}

    def _chunk(self, fields: dict[str, Any], *, last: bool = False) -> bytes:
        choice = self.style.choice({"index": 0, "finish_reason": None, **fields}, last=last)
        return event(self.style.envelope({**self._base("chat.completion.chunk"), "choices": [choice]}))

    def _base(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.model}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextShape:
    """`/v1/completions`: everything is text."""

    style: Style
    id: str
    model: str
    usage_asked: bool

    def head(self) -> list[bytes]:
        """See `Shape`."""
        return []

    def part(self, emission: Emission) -> bytes:
        """See `Shape`."""
        return event(self._body([self._choice(emission.text, None)]))

    def tail(self, job: Job, *, usage: bool) -> list[bytes]:
        """See `Shape`."""
        events = [event(self._body([self._choice("", job.finish_reason)]))]
        if usage and self.usage_asked:
            events.append(event({**self._body([]), "usage": self.style.usage(job), **self.style.extras(job)}))
        return [*events, DONE]

    def whole(self, job: Job, parts: Sequence[Emission], *, usage: bool) -> dict[str, Any]:
        """See `Shape`."""
        body = self._body([self._choice("".join(part.text for part in parts), job.finish_reason)])
        return {**body, "usage": self.style.usage(job), **self.style.extras(job)} if usage else body

    def _choice(self, text: str, finish: str | None) -> dict[str, Any]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}

    def _body(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        base = {"id": self.id, "object": "text_completion", "created": int(time.time()), "model": self.model}
        return self.style.envelope({**base, "choices": choices})


def joined(parts: Sequence[Emission], kind: str) -> str:
    """Return the text of all parts of a kind."""
    return "".join(part.text for part in parts if part.kind == kind)


def whole_calls(parts: Sequence[Emission]) -> list[dict[str, str]]:
    """Return the tool calls that parts add up to."""
    calls: list[dict[str, str]] = []
    for part in parts:
        if part.kind != "tool_call":
            continue
        if part.name is not None:
            calls.append({"name": part.name, "arguments": ""})
        if calls:
            calls[-1]["arguments"] += part.text
    return calls
