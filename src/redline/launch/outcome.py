"""What a boot came to, as records: how long each stage took, what the server held, or why it did not start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from redline.launch.state import FINAL_STATES, ServerRecord, ServerState, event_seconds
from redline.record.event import payload

_ENDS_A_BOOT: Final = frozenset({ServerState.READY, ServerState.DRAINING, *FINAL_STATES})


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """A stage of a boot, in seconds since the server was created."""

    stage: str
    begin_s: float
    end_s: float


@payload("server.started")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """A server became ready; seconds from the start of its process, and memory its engine held then."""

    server_id: str
    ready_s: float
    memory_bytes: int
    stages: tuple[StageTime, ...] = ()


@payload("server.failed")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFailed:
    """A server did not become ready. `cause` is None where the log shows no known fault; `evidence` gives it away."""

    server_id: str
    reason: str
    cause: str | None
    evidence: str | None
    remedies: tuple[str, ...]
    log_tail: tuple[str, ...]
    stages: tuple[StageTime, ...] = ()


@payload("server.memory")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemory:
    """What the server's processes held at one moment: resident bytes, and bytes on each GPU where that is known."""

    server_id: str
    phase: str
    resident_bytes: int
    gpu_bytes: tuple[int, ...] = ()


def stage_times(record: ServerRecord, history: Sequence[Mapping[str, Any]]) -> tuple[StageTime, ...]:
    """Return the stages of a boot from its history, up to the moment it was ready or over."""
    marks: list[tuple[str, float]] = []
    for event in history:
        state, seconds = str(event["state"]), event_seconds(record, event)
        if not marks or marks[-1][0] != state:
            marks.append((state, seconds))
        if state in _ENDS_A_BOOT:
            break
    return tuple(
        StageTime(stage=stage, begin_s=begin, end_s=max(begin, end)) for (stage, begin), (_, end) in pairwise(marks)
    )
