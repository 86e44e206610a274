"""A server on disk: `servers/<id>/` with its plan, its state, its events and its log.

The supervisor alone writes the state while it lives; every other process reads it, and only repairs it once the
supervisor is proved dead. Ages are taken from the monotonic clock: the wall clock may jump, and is for reading only.
"""

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from redline.errors import RedlineError
from redline.record.files import read_json, write_atomic
from redline.rig.process import ProcessId, boot_id

SCHEMA: Final = 2
PLAN_FILE: Final = "plan.json"
STATE_FILE: Final = "server.json"
EVENTS_FILE: Final = "events.jsonl"
PROCESSES_FILE: Final = "processes.json"
LOG_FILE: Final = "engine.log"
SUPERVISOR_LOG: Final = "supervisor.log"
_SUPERVISOR_APPEARS_S: Final = 30.0


class ServerState(StrEnum):
    """Where a server stands, in the order things happen."""

    PLANNED = "planned"
    CHECKED = "checked"
    FETCHING = "fetching"
    STARTING = "starting"
    LOADING = "loading"
    COMPILING = "compiling"
    ALLOCATING = "allocating"
    CAPTURING = "capturing"
    WARMING = "warming"
    LISTENING = "listening"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


FINAL_STATES: Final = frozenset({ServerState.STOPPED, ServerState.FAILED})
PREPARING_STATES: Final = frozenset({ServerState.PLANNED, ServerState.CHECKED, ServerState.FETCHING})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What is known of a server. `reason` says why it failed or how it stopped; times are Unix seconds.

    `owner` is the command that prepares it, until a supervisor takes over. `ended` says that its end was seen through,
    so that nothing of it can be left. `sequence` orders servers whatever the clock did.
    """

    schema_version: int
    server_id: str
    slug: str
    url: str
    port: int
    state: ServerState
    served_model: str
    engine: str
    engine_version: str
    created_at: float
    changed_at: float
    form: str = "embedded"
    sequence: int = 0
    boot_id: str | None = None
    created_mono_ns: int | None = None
    changed_mono_ns: int | None = None
    ready_at: float | None = None
    ready_s: float | None = None
    owner: ProcessId | None = None
    supervisor: ProcessId | None = None
    engine_process: ProcessId | None = None
    container: str | None = None
    progress: float | None = None
    restarts: int = 0
    lost_log_bytes: int = 0
    reason: str | None = None
    exit_code: int | None = None
    ended: bool = False

    @property
    def running(self) -> bool:
        """Whether the server has not come to an end, as far as its record says."""
        return self.state not in FINAL_STATES

    @property
    def supervised(self) -> bool:
        """Whether its supervisor lives."""
        return self.supervisor is not None and self.supervisor.alive()

    @property
    def host(self) -> str:
        """The address its clients on this machine use."""
        return self.url.removeprefix("http://").rpartition(":")[0].strip("[]")

    @property
    def age_s(self) -> float | None:
        """Seconds since it was made, or None for one of an earlier boot or an older redline."""
        if self.created_mono_ns is None or self.boot_id != boot_id():
            return None
        return (time.monotonic_ns() - self.created_mono_ns) / 1e9

    def called(self, name: str) -> bool:
        """Whether a user means this server by a slug, its part after the engine, an id or a port."""
        return name in (self.slug, self.slug.partition("/")[2], self.server_id, str(self.port))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A folder that holds something else than a server this version can read, and why."""

    folder: Path
    why: str


_FIELDS: Final = frozenset(item.name for item in fields(ServerRecord))


def write_record(directory: Path, record: ServerRecord) -> None:
    """Replace the server's state on disk in one step."""
    write_atomic(directory / STATE_FILE, json.dumps(asdict(record), indent=1) + "\n")


def read_record(directory: Path) -> ServerRecord | None:
    """Return a server's state, or None where the folder holds none that this version can read.

    Records of older and newer versions are read as far as they go: a server must be found, and stopped, by a redline
    that was updated while it ran.
    """
    found = _read(directory)
    return found if isinstance(found, ServerRecord) else None


def _read(directory: Path) -> ServerRecord | Unreadable:
    data = read_json(directory / STATE_FILE)
    if not isinstance(data, Mapping):
        there = (directory / STATE_FILE).exists()
        return Unreadable(directory, "its server.json is damaged" if there else "it has no server.json")
    try:
        known = {name: value for name, value in data.items() if name in _FIELDS}
        processes = {name: _process(data.get(name)) for name in ("owner", "supervisor", "engine_process")}
        record = ServerRecord(**{**known, **processes, "state": ServerState(data["state"])})
        float(record.created_at), int(record.port), str(record.url)
    except (TypeError, ValueError, KeyError) as error:
        return Unreadable(directory, f"schema {data.get('schema_version')} of its server.json cannot be read: {error}")
    return record


def _process(data: Any) -> ProcessId | None:
    return ProcessId(int(data["pid"]), int(data["start_ticks"]), str(data["boot_id"])) if data else None


def append_event(directory: Path, state: ServerState, text: str) -> None:
    """Add one line to the server's history: Unix time, monotonic time, state, words."""
    append_line(directory, event_line(state, text))


def event_line(state: ServerState, text: str) -> str:
    """Return a line of a history as it stands now."""
    return json.dumps({"time": time.time(), "mono_ns": time.monotonic_ns(), "state": state.value, "text": text})


def append_line(directory: Path, line: str) -> None:
    """Add a line that `event_line` made.

    Raises:
        OSError: the disk is full or not writable.
    """
    with (directory / EVENTS_FILE).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_history(directory: Path) -> list[dict[str, Any]]:
    """Return the server's history; lines that are not whole are left out."""
    try:
        lines = (directory / EVENTS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    history = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"time", "state", "text"} <= event.keys():
            history.append(event)
    return history


def event_seconds(record: ServerRecord, event: Mapping[str, Any]) -> float:
    """Return how long after the server's making an event happened, whatever the wall clock did since."""
    if record.created_mono_ns is None or "mono_ns" not in event:
        return max(0.0, float(event["time"]) - record.created_at)
    return max(0.0, (int(event["mono_ns"]) - record.created_mono_ns) / 1e9)


def scan_servers(servers_dir: Path) -> tuple[list[tuple[Path, ServerRecord]], list[Unreadable]]:
    """Return every server, oldest first, and every folder that none can be read from."""
    if not servers_dir.is_dir():
        return [], []
    with os.scandir(servers_dir) as entries:
        folders = [Path(entry.path) for entry in entries if entry.is_dir()]
    servers, rest = [], []
    for folder in folders:
        found = _read(folder)
        if isinstance(found, ServerRecord):
            servers.append((folder, found))
        else:
            rest.append(found)
    servers.sort(key=lambda item: (item[1].sequence, item[1].created_at))
    return servers, sorted(rest, key=lambda item: item.folder)


def list_servers(servers_dir: Path) -> list[tuple[Path, ServerRecord]]:
    """Return every readable server, oldest first."""
    return scan_servers(servers_dir)[0]


def repaired(directory: Path, record: ServerRecord) -> ServerRecord:
    """Return the record as the processes prove it to be, and write it when it was out of date.

    A running server whose supervisor is gone (kill -9, power cut) becomes a failed one, and so does one in preparation
    whose command is gone. What is left of its engine is found by `redline.launch.family`.
    """
    if not record.running or record.supervised:
        return record
    reason = _why_dead(record)
    if reason is None:
        return record
    current = read_record(directory)
    if current != record:  # it moved on between the reading and now
        return repaired(directory, current) if current is not None else record
    nothing_started = record.supervisor is None and record.engine_process is None
    fixed = replace(record, state=ServerState.FAILED, changed_at=time.time(), reason=reason, ended=nothing_started)
    if record.schema_version <= SCHEMA:  # what a newer version wrote is its own to change
        with contextlib.suppress(OSError, RedlineError):  # on a full disk the next command repairs it
            append_event(directory, ServerState.FAILED, reason)
            write_record(directory, replace(fixed, schema_version=SCHEMA))
    return fixed


def _why_dead(record: ServerRecord) -> str | None:
    """Return why a record that says running is wrong, or None while it may still be right."""
    if record.supervisor is not None:
        rebooted = record.supervisor.boot_id != boot_id()
        return "the machine was restarted" if rebooted else "its supervisor ended without a word (killed?)"
    if record.boot_id is not None and record.boot_id != boot_id():
        return "the machine was restarted"
    if record.owner is not None and record.owner.alive():
        return None
    if record.state in PREPARING_STATES and record.owner is not None:
        return "the command that prepared it ended without a word (killed?)"
    waited = _since_change_s(record)
    return None if waited < _SUPERVISOR_APPEARS_S else "its supervisor never appeared"


def _since_change_s(record: ServerRecord) -> float:
    if record.changed_mono_ns is None:
        return max(0.0, time.time() - record.changed_at)
    return (time.monotonic_ns() - record.changed_mono_ns) / 1e9
