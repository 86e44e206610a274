"""A run on disk: `runs/<id>/manifest.json` and the append-only `events.jsonl`.

The manifest is written first and never changed, so an interrupted run is a readable run without its last event.
"""

import contextlib
import json
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from redline import __version__
from redline.errors import AccessError, RedlineError
from redline.record.codec import from_json, jsonable
from redline.record.event import EVENT_SCHEMA, Envelope, kind_of, payload
from redline.record.files import explain_os_error, make_dir, read_json, write_atomic
from redline.record.manifest import DEFINITIONS_VERSION, MANIFEST_SCHEMA, RunManifest

Outcome = Literal["complete", "failed", "interrupted"]
EVENTS_FILE: Final = "events.jsonl"
MANIFEST_FILE: Final = "manifest.json"


@payload("run.finished")
@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of a run that ended in an orderly way; a run without it was cut off."""

    outcome: Outcome
    exit_code: int
    summary: str


def now_utc() -> str:
    """Return the wall-clock time as ISO 8601 with seconds, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Run:
    """A run being recorded. As a context manager it writes its own last event, whatever ends the block."""

    def __init__(self, directory: Path, manifest: RunManifest) -> None:
        self.directory = directory
        self.manifest = manifest
        self._seq = 0
        self._finished = False
        write_atomic(directory / MANIFEST_FILE, json.dumps(jsonable(manifest), indent=2) + "\n")
        self._file = (directory / EVENTS_FILE).open("a", encoding="utf-8")

    @property
    def run_id(self) -> str:
        """The run's name, unique in its folder of runs: `2026-11-29-a3f`."""
        return self.manifest.run_id

    def append(self, value: object) -> None:
        """Write one payload as one line, flushed to the operating system at once.

        Raises:
            AccessError, DiskSpaceError: the line cannot be written.
        """
        kind, version = kind_of(value)
        envelope = Envelope(
            schema_version=EVENT_SCHEMA,
            seq=self._seq,
            time=now_utc(),
            mono_ns=time.monotonic_ns(),
            kind=kind,
            payload_version=version,
            payload=jsonable(value),
        )
        try:
            self._file.write(json.dumps(jsonable(envelope), ensure_ascii=False) + "\n")
            self._file.flush()
        except OSError as error:
            raise explain_os_error(error, self.directory / EVENTS_FILE) from None
        self._seq += 1

    def finish(self, outcome: Outcome, exit_code: int, summary: str) -> None:
        """Write the last event once; later calls do nothing."""
        if not self._finished:
            self._finished = True
            self.append(RunFinished(outcome=outcome, exit_code=exit_code, summary=summary))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(RedlineError):
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                self.finish("interrupted", 130, "interrupted")
            elif isinstance(error, RedlineError):
                self.finish("failed", int(error.exit_code), error.message)
            elif error is not None:
                self.finish("failed", 4, f"{type(error).__name__}: {error}")
        self._file.close()


def create_run(runs_dir: Path, command: str, *, url: str | None, **conditions: Any) -> Run:
    """Make a new run folder and write its manifest; `conditions` are further fields of `RunManifest`.

    Raises:
        AccessError, DiskSpaceError: the folder cannot be made.
    """
    make_dir(runs_dir)
    started_at = now_utc()
    for _ in range(100):
        run_id = f"{started_at[:10]}-{secrets.token_hex(2)[:3]}"
        try:
            (runs_dir / run_id).mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise explain_os_error(error, runs_dir / run_id) from None
        manifest = RunManifest(
            schema_version=MANIFEST_SCHEMA,
            run_id=run_id,
            command=command,
            started_at=started_at,
            redline_version=__version__,
            definitions_version=DEFINITIONS_VERSION,
            url=url,
            **conditions,
        )
        return Run(runs_dir / run_id, manifest)
    raise AccessError(f"No free run name is left in {runs_dir} for today.", next_step="Remove old runs.")


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as a list shows it. `problem` says why a folder is unreadable; then the other fields are empty."""

    run_id: str
    directory: str
    command: str = ""
    started_at: str = ""
    slug: str | None = None
    url: str | None = None
    outcome: str = "cut off"
    summary: str = ""
    problem: str | None = None


def read_events(directory: Path) -> Iterator[Envelope]:
    """Yield the readable events of a run in order; a torn last line, left by a power cut, ends the sequence."""
    try:
        file = (directory / EVENTS_FILE).open(encoding="utf-8", errors="replace")
    except OSError:
        return
    with file:
        for line in file:
            try:
                yield from_json(Envelope, json.loads(line))
            except ValueError:
                return


def read_manifest(directory: Path) -> RunManifest:
    """Return a run's manifest.

    Raises:
        ValueError: absent, torn, of a newer schema or not of this shape.
    """
    data = read_json(directory / MANIFEST_FILE)
    if data is None:
        raise ValueError("no readable manifest.json")
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != MANIFEST_SCHEMA:
        raise ValueError(f"manifest schema {version}; this redline reads {MANIFEST_SCHEMA}")
    return from_json(RunManifest, data)


def list_runs(runs_dir: Path) -> list[RunRow]:
    """Return every run folder, newest first; unreadable ones are listed with their problem."""
    if not runs_dir.is_dir():
        return []
    with os.scandir(runs_dir) as entries:
        folders = [Path(entry.path) for entry in entries if entry.is_dir()]
    rows = [_read_row(folder) for folder in folders]
    return sorted(rows, key=lambda row: (row.started_at, row.run_id), reverse=True)


def _read_row(directory: Path) -> RunRow:
    try:
        manifest = read_manifest(directory)
    except ValueError as error:
        return RunRow(directory.name, str(directory), problem=str(error).splitlines()[0])
    row = RunRow(manifest.run_id, str(directory), manifest.command, manifest.started_at, manifest.slug, manifest.url)
    for event in read_events(directory):
        if event.kind == "run.finished":
            return RunRow(
                row.run_id,
                row.directory,
                row.command,
                row.started_at,
                row.slug,
                row.url,
                outcome=event.payload["outcome"],
                summary=event.payload["summary"],
            )
    return row
