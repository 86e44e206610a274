"""One request and its answer, with the time of everything that happened between them.

All stamps are `time.monotonic_ns()` of this machine. A stamp of something that never happened is None; so is every
count that the server did not give.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from redline.record.event import payload


class ErrorKind(StrEnum):
    """Why an exchange has no usable answer."""

    CONNECT = "connect"  # nobody listens, or the address is wrong
    TIMEOUT = "timeout"
    STATUS = "status"  # an HTTP status other than 200
    TRUNCATED = "truncated"  # the stream ended without its end
    PROTOCOL = "protocol"  # an answer that is no HTTP, no JSON or no chat completion
    SERVER = "server"  # status 200 with an error inside


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeError:
    """What went wrong, with the server's own words where it gave any."""

    kind: ErrorKind
    message: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server states them; the only source of token counts there is."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call put together from its pieces; `arguments` is the text as the server sent it."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One streamed event that carried text or part of a tool call: when it came and how many characters it held."""

    at_ns: int
    kind: str
    characters: int


@payload("exchange")
@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A finished request. `first_chunk_tokens` is how many tokens the first chunk held: 1 unless the engine says."""

    sent_ns: int
    headers_ns: int | None = None
    first_choice_ns: int | None = None
    first_reasoning_ns: int | None = None
    first_content_ns: int | None = None
    first_tool_call_ns: int | None = None
    last_token_ns: int | None = None
    end_ns: int
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    model: str | None = None
    chunks: tuple[Chunk, ...] = ()
    first_chunk_tokens: int = 1
    error: ExchangeError | None = None

    @property
    def first_token_ns(self) -> int | None:
        """When the first token of any kind arrived: reasoning, content or part of a tool call."""
        stamps = (self.first_reasoning_ns, self.first_content_ns, self.first_tool_call_ns)
        return min((stamp for stamp in stamps if stamp is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A chat to have completed. Every sampling field is sent, so that no engine's default decides a result."""

    messages: tuple[dict[str, Any], ...]
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    extra: tuple[tuple[str, Any], ...] = ()

    def body(self, model: str, *, stream: bool) -> dict[str, Any]:
        """Return the JSON body for `/v1/chat/completions`."""
        body: dict[str, Any] = {
            "model": model,
            "messages": list(self.messages),
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "stream": stream,
        }
        if stream:
            body["stream_options"] = {"include_usage": True}
        if self.seed is not None:
            body["seed"] = self.seed
        return {**body, **dict(self.extra)}
