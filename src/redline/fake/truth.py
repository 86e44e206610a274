"""What really happened, one JSON line an event: what measuring code is compared with.

Stamps are CLOCK_MONOTONIC in nanoseconds, taken right before and right after the bytes went to the kernel, on the
machine's one monotonic clock: a client on the same machine can subtract them from its own.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write to the socket: `tokens` is how many tokens of the answer it carried, `kind` of what sort."""

    request: int
    event: Literal["head", "chunk", "end"]
    before_ns: int
    after_ns: int
    kind: Literal["reasoning", "content", "tool_call", "usage", "none"] = "none"
    tokens: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request as the engine knows it: token counts, drafting, and the seconds that were meant."""

    request: int
    event: Literal["answered"] = "answered"
    received_ns: int
    first_token_ns: int | None
    last_token_ns: int | None
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    drafts: int
    drafted_tokens: int
    accepted_tokens: int
    finish_reason: str | None


class TruthLog:
    """Appends events to a file; without a path it forgets them. Each line is whole once written, whatever follows."""

    def __init__(self, path: Path | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = None if path is None else os.open(path, flags, 0o644)

    def add(self, event: Write | Answered) -> None:
        """Write one event."""
        if self._file is not None:
            os.write(self._file, json.dumps(asdict(event), separators=(",", ":")).encode() + b"\n")


def read_truth(path: Path) -> list[Write | Answered]:
    """Return the events of a file in order.

    Raises:
        ValueError, TypeError: a line is no such event.
    """
    events: list[Write | Answered] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        events.append(Answered(**data) if data["event"] == "answered" else Write(**data))
    return events
