"""A server on disk: `servers/<id>/` with its plan, its state, its events and its log.

The supervisor alone writes the state while it lives; every other process reads it, and only repairs it once the
supervisor is proved dead.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from redline.record.files import read_json, write_atomic
from redline.rig.process import ProcessId, boot_id

SCHEMA: Final = 1
PLAN_FILE: Final = "plan.json"
STATE_FILE: Final = "server.json"
EVENTS_FILE: Final = "events.jsonl"
LOG_FILE: Final = "engine.log"
SUPERVISOR_LOG: Final = "supervisor.log"


class ServerState(StrEnum):
    """Where a server stands, in the order things happen."""

    PLANNED = "planned"
    CHECKED = "checked"
    FETCHING = "fetching"
    STARTING = "starting"
    LOADING = "loading"
    COMPILING = "compiling"
    CAPTURING = "capturing"
    WARMING = "warming"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"
    FAILED = "failed"


FINAL_STATES: Final = frozenset({ServerState.STOPPED, ServerState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """What is known of a server. `reason` says why it failed or how it stopped; times are Unix seconds."""

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
    ready_at: float | None = None
    supervisor: ProcessId | None = None
    engine_process: ProcessId | None = None
    reason: str | None = None
    exit_code: int | None = None

    @property
    def running(self) -> bool:
        """Whether the server has not come to an end, as far as its record says."""
        return self.state not in FINAL_STATES


def write_record(directory: Path, record: ServerRecord) -> None:
    """Replace the server's state on disk in one step."""
    write_atomic(directory / STATE_FILE, json.dumps(asdict(record), indent=1) + "\n")


def read_record(directory: Path) -> ServerRecord | None:
    """Return a server's state, or None where the folder holds none that this version can read."""
    data = read_json(directory / STATE_FILE)
    if not isinstance(data, Mapping) or data.get("schema_version") != SCHEMA:
        return None
    try:
        return ServerRecord(
            **{
                **data,
                "state": ServerState(data["state"]),
                "supervisor": _process(data.get("supervisor")),
                "engine_process": _process(data.get("engine_process")),
            }
        )
    except (TypeError, ValueError, KeyError):
        return None


def _process(data: Any) -> ProcessId | None:
    return ProcessId(**data) if data else None


def append_event(directory: Path, state: ServerState, text: str) -> None:
    """Add one line to the server's history: Unix time, monotonic time, state, words."""
    line = json.dumps({"time": time.time(), "mono_ns": time.monotonic_ns(), "state": state.value, "text": text})
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
            history.append(json.loads(line))
        except ValueError:
            continue
    return history


def list_servers(servers_dir: Path) -> list[tuple[Path, ServerRecord]]:
    """Return every readable server, oldest first."""
    if not servers_dir.is_dir():
        return []
    with os.scandir(servers_dir) as entries:
        folders = sorted(Path(entry.path) for entry in entries if entry.is_dir())
    found = [(folder, record) for folder in folders if (record := read_record(folder))]
    return sorted(found, key=lambda item: item[1].created_at)


def repaired(directory: Path, record: ServerRecord) -> ServerRecord:
    """Return the record as the processes prove it to be, and write it when it was out of date.

    A record of a running server whose supervisor is gone (kill -9, power cut) becomes a failed one. The engine of a
    dead supervisor ends by itself; callers that need its port wait for `engine_process` to be gone.
    """
    if not record.running or (record.supervisor is not None and record.supervisor.alive()):
        return record
    if record.supervisor is None and time.time() - record.created_at < 10:
        return record  # its supervisor is only just being started
    rebooted = record.supervisor is not None and record.supervisor.boot_id != boot_id()
    reason = "the machine was restarted" if rebooted else "its supervisor ended without a word (killed?)"
    fixed = replace(record, state=ServerState.FAILED, changed_at=time.time(), reason=reason)
    write_record(directory, fixed)
    append_event(directory, ServerState.FAILED, reason)
    return fixed
