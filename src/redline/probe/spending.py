"""What a client's requests took together, by the server's own counts. Knows the forms in which an answer states them.

OpenAI's form counts `prompt_tokens` and `completion_tokens`; Anthropic's `input_tokens` without those from its cache,
and in a stream first the input and at last the output (https://docs.anthropic.com/en/api/messages-streaming).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from redline.probe.exchange import Usage

_CACHED: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
GENERATES: Final = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/messages"})


@dataclass(slots=True)
class Spending:
    """Tokens and requests. Mutable: one client, one event loop. `uncounted` requests said nothing of their tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 0
    uncounted: int = 0

    def add(self, usage: Usage) -> None:
        """Count one request."""
        self.requests += 1
        self.uncounted += usage.prompt_tokens is None and usage.completion_tokens is None
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0


def usage_of_text(text: str) -> Usage:
    """Return the tokens that an answer states, whole or streamed; None where it states none."""
    prompt: int | None = None
    completion: int | None = None
    for row in _usages(text):
        said = _count(row.get("prompt_tokens"))
        if said is None and _count(row.get("input_tokens")) is not None:
            said = sum(_count(row.get(name)) or 0 for name in ("input_tokens", *_CACHED))
        prompt = said if said is not None else prompt
        made = _count(row.get("completion_tokens", row.get("output_tokens")))
        completion = made if made is not None else completion
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def _usages(text: str) -> Iterator[Mapping[str, Any]]:
    events = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    for part in events or [text]:
        try:
            data = json.loads(part)
        except ValueError:
            continue
        if not isinstance(data, dict):
            continue
        message = data.get("message")
        for holder in (data, message if isinstance(message, dict) else {}):
            if isinstance(holder.get("usage"), dict):
                yield holder["usage"]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
