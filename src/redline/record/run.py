"""Writing a run: `runs/<id>/manifest.json` and the append-only `events.jsonl`.

The manifest is written first and never changed, so an interrupted run is a readable run without its last event. The
events file is locked while it is written; the kernel drops the lock with its holder, so a run that is under way can
be told from one that was cut off.
"""

import contextlib
import fcntl
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from redline import __version__
from redline.errors import AccessError, RedlineError
from redline.record.codec import jsonable
from redline.record.event import EVENT_SCHEMA, Envelope, kind_of, payload
from redline.record.files import explain_os_error, make_dir, write_atomic
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
        with contextlib.suppress(OSError):  # a file system without locks: the run shows as cut off until it ends
            fcntl.flock(self._file, fcntl.LOCK_EX)

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
