"""Reading runs back, whatever state their folders are in.

A record may be torn, of a newer redline, or written by somebody else: what cannot be read is named and the rest is
used. Knows nothing of what the payloads mean.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from redline.record.codec import from_json, jsonable
from redline.record.disclose import disclose
from redline.record.event import EVENT_SCHEMA, Envelope, registered_kinds
from redline.record.files import read_json
from redline.record.manifest import MANIFEST_SCHEMA, RunManifest
from redline.record.plain import plain_line
from redline.record.redact import Redactor
from redline.record.run import EVENTS_FILE, MANIFEST_FILE, RunFinished

T = TypeVar("T")

# An exchange with its chunks is the longest line there is, about 100 kB; beyond these bounds a file is hostile.
_MAX_LINE_BYTES: Final = 8 * 2**20
_MAX_EVENTS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Event:
    """One event with its payload as the class that its room declares."""

    seq: int
    time: str
    mono_ns: int
    payload: object


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it can be read. `problems` are sentences about what could not; `writing` says that it is under way."""

    directory: Path
    manifest: RunManifest
    events: tuple[Event, ...]
    finished: RunFinished | None
    writing: bool
    problems: tuple[str, ...]

    @property
    def run_id(self) -> str:
        """The run's own name; the folder may have been renamed."""
        return self.manifest.run_id

    @property
    def outcome(self) -> str:
        """How the run ended: complete, failed, interrupted; running, or cut off when its end was never written."""
        if self.finished is not None:
            return self.finished.outcome
        return "running" if self.writing else "cut off"

    def payloads(self, kind: type[T]) -> tuple[T, ...]:
        """Return the payloads of one class, in order."""
        return tuple(event.payload for event in self.events if isinstance(event.payload, kind))

    def of(self, kind: type[T]) -> tuple[tuple[Event, T], ...]:
        """Return the payloads of one class with their events, in order."""
        return tuple((event, event.payload) for event in self.events if isinstance(event.payload, kind))


def read_manifest(directory: Path) -> RunManifest:
    """Return a run's manifest.

    Raises:
        ValueError: absent, torn, of a newer schema or not of this shape; the message is a short sentence.
    """
    data = read_json(directory / MANIFEST_FILE)
    if data is None:
        missing = not (directory / MANIFEST_FILE).exists()
        raise ValueError("manifest.json is missing" if missing else "manifest.json is torn or no JSON")
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != MANIFEST_SCHEMA:
        said = plain_line(repr(version), 40)
        raise ValueError(f"its manifest has schema {said}; this redline reads {MANIFEST_SCHEMA}")
    try:
        return from_json(RunManifest, data)
    except ValueError as error:
        raise ValueError(f"its manifest is not of schema {MANIFEST_SCHEMA}: {_first_error(error)}") from None


def is_being_written(directory: Path) -> bool:
    """Whether the process that records this run still holds its events file."""
    try:
        descriptor = os.open(directory / EVENTS_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def load_run(directory: Path, redactor: Redactor | None = None) -> RunRecord:
    """Return a run with typed payloads; with a redactor, only what may be shared is in it.

    Raises:
        ValueError: the manifest cannot be read, so nothing says what the events are about.
    """
    manifest = read_manifest(directory)
    if redactor is not None:
        manifest = from_json(RunManifest, disclose(jsonable(manifest), redactor))
    events, problems = _read_typed(directory, redactor)
    finished = [event.payload for event in events if isinstance(event.payload, RunFinished)]
    return RunRecord(
        directory=directory,
        manifest=manifest,
        events=tuple(events),
        finished=finished[-1] if finished else None,
        writing=is_being_written(directory),
        problems=problems,
    )


def read_events(directory: Path) -> Iterator[Envelope]:
    """Yield the readable events of a run in order; lines that are no event are left out."""
    yield from (item for item in _scan(directory) if isinstance(item, Envelope))


def _read_typed(directory: Path, redactor: Redactor | None) -> tuple[list[Event], tuple[str, ...]]:
    events: list[Event] = []
    unread: Counter[str] = Counter()
    problems: list[str] = []
    for item in _scan(directory):
        if isinstance(item, str):
            problems.append(item)
            continue
        found = _typed(item, redactor)
        if isinstance(found, Event):
            events.append(found)
        else:
            unread[found] += 1
    problems += [f"{count} event{'s' if count > 1 else ''} {why}" for why, count in unread.items()]
    return events, tuple(problems)


def _typed(envelope: Envelope, redactor: Redactor | None) -> Event | str:
    """Return the event, or why it is left out."""
    shown = envelope.kind if envelope.kind.replace(".", "").replace("_", "").isalnum() else "of an odd name"
    found = registered_kinds().get(envelope.kind)
    if found is None:
        return f"of a kind this redline does not know: {shown[:60]}"
    cls, version = found
    if envelope.payload_version > version:
        return f"of {shown} version {envelope.payload_version}; this redline reads up to {version}"
    payload, time = envelope.payload, envelope.time
    if redactor is not None:
        payload, time = disclose(payload, redactor), disclose(time, redactor, name="time")
    try:
        return Event(envelope.seq, time, envelope.mono_ns, from_json(cls, payload))
    except ValueError as error:
        return f"of {shown} not in its form: {_first_error(error)}"


def _scan(directory: Path) -> Iterator[Envelope | str]:
    """Yield envelopes, and a sentence for each line that is none; a torn last line is what a power cut leaves."""
    try:
        file = (directory / EVENTS_FILE).open("rb")
    except FileNotFoundError:
        yield "events.jsonl is missing"
        return
    except OSError as error:
        yield f"events.jsonl cannot be read: {error.strerror}"
        return
    with file:
        for number in range(1, _MAX_EVENTS + 1):
            line = file.readline(_MAX_LINE_BYTES)
            if not line:
                return
            envelope = _envelope(line)
            if envelope is not None:
                yield envelope
            elif not line.endswith(b"\n"):
                yield from _torn(file, number, line)
            else:
                yield f"line {number} of events.jsonl is no event"
        yield f"events.jsonl has more than {_MAX_EVENTS} lines; the rest is left out"


def _torn(file: Any, number: int, line: bytes) -> Iterator[str]:
    if len(line) < _MAX_LINE_BYTES:
        yield f"the last line of events.jsonl is torn (line {number})"
        return
    while line and not line.endswith(b"\n"):
        line = file.readline(_MAX_LINE_BYTES)
    yield f"line {number} of events.jsonl is longer than {_MAX_LINE_BYTES // 2**20} MiB and left out"


def _envelope(line: bytes) -> Envelope | None:
    try:
        found = from_json(Envelope, json.loads(line))
    except (ValueError, RecursionError):
        return None
    return found if found.schema_version <= EVENT_SCHEMA else replace(found, kind="newer.envelope")


def _first_error(error: ValueError) -> str:
    """Return a validation error's first finding as `field: message`, bounded."""
    details = getattr(error, "errors", None)
    if details is None:
        return str(error)[:160]
    first = details(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'value'}: {first['msg']}"[:160]
