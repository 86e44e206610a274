"""A capture into an `Exchange`: server-sent events, merged message, stamps, usage, typed errors.

Both spellings of the reasoning field are read (`reasoning`, and `reasoning_content` of older engines).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from redline.probe.exchange import Chunk, ErrorKind, Exchange, ExchangeError, ToolCall, Usage
from redline.probe.http1 import HttpError, Response, parse_response
from redline.probe.wire import Capture

_REASONING_FIELDS: Final = ("reasoning", "reasoning_content")


def read_exchange(capture: Capture) -> Exchange:
    """Return the exchange of a captured streamed chat completion. Never raises for what the server sent."""
    if not capture.segments:
        error = capture.error or ExchangeError(kind=ErrorKind.TRUNCATED, message="the server closed without a word")
        return Exchange(sent_ns=capture.sent_ns, end_ns=capture.end_ns, error=error)
    try:
        response = parse_response(capture.segments)
    except HttpError as problem:
        error = capture.error or ExchangeError(kind=ErrorKind.PROTOCOL, message=str(problem))
        return Exchange(sent_ns=capture.sent_ns, end_ns=capture.end_ns, error=error)
    if response.status != 200:
        return _failed(capture, response, ErrorKind.STATUS, _server_words(response.body), response.status)
    if "text/event-stream" not in response.headers.get("content-type", ""):
        return _failed(capture, response, *_explain_non_stream(response), 200)
    merged = _Merged()
    try:
        for text, at_ns in _events(response):
            if text == "[DONE]":
                merged.done = True
            else:
                merged.take(json.loads(text), at_ns)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as problem:
        return _failed(capture, response, ErrorKind.PROTOCOL, f"unreadable event: {problem}", 200)
    return merged.exchange(capture, response, merged.error or capture.error or _incomplete(merged, response))


def _incomplete(merged: "_Merged", response: Response) -> ExchangeError | None:
    """Return what is missing from a stream that ended without an error of its own."""
    if not merged.seen:
        return ExchangeError(kind=ErrorKind.PROTOCOL, message="a stream without one event")
    if not (merged.done or merged.finish_reason):
        return ExchangeError(kind=ErrorKind.TRUNCATED, message="the stream ended without a finish reason")
    if not response.complete:
        return ExchangeError(kind=ErrorKind.TRUNCATED, message="the connection closed inside the stream")
    return None


def _failed(capture: Capture, response: Response, kind: ErrorKind, message: str, status: int) -> Exchange:
    return Exchange(
        sent_ns=capture.sent_ns,
        headers_ns=response.headers_ns,
        end_ns=capture.end_ns,
        error=capture.error or ExchangeError(kind=kind, message=message, status=status),
    )


def _explain_non_stream(response: Response) -> tuple[ErrorKind, str]:
    kind = response.headers.get("content-type", "no content type")
    words = _server_words(response.body)
    try:
        if isinstance(json.loads(response.body), dict) and "error" in json.loads(response.body):
            return ErrorKind.SERVER, words
    except ValueError:
        pass
    return ErrorKind.PROTOCOL, f"expected a stream of events, got {kind}: {words}"


def _server_words(body: bytes) -> str:
    text = body.decode("utf-8", errors="replace").strip()
    try:
        data = json.loads(text)
        error = data.get("error", data) if isinstance(data, dict) else data
        text = str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except ValueError:
        pass
    return text[:300] or "no text"


def _events(response: Response) -> Iterator[tuple[str, int]]:
    """Yield the data of each event with the time its closing line had arrived."""
    body, start = response.body, 0
    while (end := body.find(b"\n\n", start)) >= 0 or (end := body.find(b"\r\n\r\n", start)) >= 0:
        block, start = body[start:end], end + (4 if body[end : end + 1] == b"\r" else 2)
        lines = [line[5:].strip() for line in block.splitlines() if line.startswith(b"data:")]
        if lines:
            yield b"\n".join(lines).decode("utf-8", errors="replace"), response.arrival_ns(start)


@dataclass(slots=True)
class _Merged:
    """The message so far. Mutable, private to one parse."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tools: dict[int, list[str]] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)
    last_token_ns: int | None = None
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    error: ExchangeError | None = None
    done: bool = False
    seen: bool = False

    def take(self, event: dict[str, Any], at_ns: int) -> None:
        self.seen = True
        if "error" in event:
            words = event["error"]
            message = str(words.get("message", words) if isinstance(words, dict) else words)[:300]
            self.error = ExchangeError(kind=ErrorKind.SERVER, message=message, status=200)
            return
        self.model = event.get("model") or self.model
        if event.get("usage"):
            self.usage = read_usage(event["usage"])
        for choice in (event.get("choices") or [])[:1]:
            self.first.setdefault("choice", at_ns)
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            self._take_delta(choice.get("delta") or {}, at_ns)

    def _take_delta(self, delta: dict[str, Any], at_ns: int) -> None:
        reasoning = next((delta[name] for name in _REASONING_FIELDS if delta.get(name)), None)
        if reasoning:
            self.reasoning.append(reasoning)
            self._token("reasoning", len(reasoning), at_ns)
        if delta.get("content"):
            self.content.append(delta["content"])
            self._token("content", len(delta["content"]), at_ns)
        for call in delta.get("tool_calls") or []:
            function = call.get("function") or {}
            parts = self.tools.setdefault(int(call.get("index", 0)), ["", ""])
            parts[0] += function.get("name") or ""
            parts[1] += function.get("arguments") or ""
            size = len(function.get("name") or "") + len(function.get("arguments") or "")
            self._token("tool_call", size, at_ns)

    def _token(self, kind: str, characters: int, at_ns: int) -> None:
        self.first.setdefault(kind, at_ns)
        self.last_token_ns = at_ns
        self.chunks.append(Chunk(at_ns=at_ns, kind=kind, characters=characters))

    def exchange(self, capture: Capture, response: Response, error: ExchangeError | None) -> Exchange:
        return Exchange(
            sent_ns=capture.sent_ns,
            headers_ns=response.headers_ns,
            first_choice_ns=self.first.get("choice"),
            first_reasoning_ns=self.first.get("reasoning"),
            first_content_ns=self.first.get("content"),
            first_tool_call_ns=self.first.get("tool_call"),
            last_token_ns=self.last_token_ns,
            end_ns=capture.end_ns,
            content="".join(self.content),
            reasoning="".join(self.reasoning),
            tool_calls=tuple(ToolCall(name=name, arguments=text) for _, (name, text) in sorted(self.tools.items())),
            finish_reason=self.finish_reason,
            usage=self.usage,
            model=self.model,
            chunks=tuple(self.chunks),
            error=error,
        )


def read_usage(data: dict[str, Any]) -> Usage:
    """Return token counts; what the server leaves out, or gives as something else than a count, is None."""
    prompt_details = data.get("prompt_tokens_details") or {}
    completion_details = data.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=_count(data.get("prompt_tokens")),
        completion_tokens=_count(data.get("completion_tokens")),
        cached_tokens=_count(prompt_details.get("cached_tokens")),
        reasoning_tokens=_count(completion_details.get("reasoning_tokens")),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
