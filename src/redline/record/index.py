"""A sqlite index of all runs: a cache that can be deleted at any time, since the folders are the truth.

A folder is read again only when its files have changed. Folders that cannot be read stay in the list, with the
reason. Knows manifests and the last event of a run, no other payload.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final, Self

from redline.errors import MissingError, UsageError
from redline.record.reading import is_being_written, read_manifest
from redline.record.run import EVENTS_FILE, MANIFEST_FILE

_VERSION: Final = 1
_LAST_LINE_BYTES: Final = 65_536
_MIN_PART: Final = 3
_LOCK_WAIT_S: Final = 2.0
_ENDED: Final = ("complete", "failed", "interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as a list shows it. `problem` says why a folder is unreadable; then the fields before it are empty.

    `twin` names another folder that holds a run of the same id, so that the id alone means neither.
    """

    folder: str
    run_id: str
    command: str = ""
    started_at: str = ""
    slug: str | None = None
    url: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    rig: str | None = None
    labels: str = ""
    outcome: str = "cut off"
    exit_code: int | None = None
    summary: str = ""
    bytes: int = 0
    problem: str | None = None
    twin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list: all conditions hold at once. `slug` is part of one; `text` words occur in any column."""

    slug: str | None = None
    command: str | None = None
    outcome: str | None = None
    since: str | None = None
    text: str | None = None


_COLUMNS: Final = tuple(item.name for item in fields(RunRow) if item.name != "twin")
_NAMES: Final = ", ".join(_COLUMNS)
_INSERT: Final = f"INSERT OR REPLACE INTO runs ({_NAMES}, stamp) VALUES ({'?, ' * len(_COLUMNS)}?)"  # noqa: S608 -- own names
_SEARCHED: Final = ("run_id", "folder", "command", "slug", "url", "engine", "engine_version", "labels", "summary")
_SEARCHED_LIKE: Final = tuple(f"{name} LIKE ? ESCAPE '!'" for name in _SEARCHED)


class RunIndex:
    """The index of one folder of runs, up to date when it has been opened. Use it as a context manager."""

    def __init__(self, runs_dir: Path) -> None:
        self.runs_dir = runs_dir
        self._db = _open(runs_dir.with_name(runs_dir.name + ".sqlite"))
        try:
            self._refresh()
        except sqlite3.Error:  # another process holds the file for long, or the disk is full: the folders suffice
            self._db.close()
            self._db = _fresh(":memory:")
            self._refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def rows(self, chosen: RunFilter | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs that the filter lets through, newest first; unreadable ones have no time and come last."""
        where, values = _where(chosen or RunFilter())
        # Only own column names and placeholders are put together here.
        query = f"SELECT {_NAMES} FROM runs WHERE {where} ORDER BY started_at DESC, run_id DESC, folder LIMIT ?"  # noqa: S608
        found = self._db.execute(query, (*values, -1 if limit is None else limit)).fetchall()
        twins = self._twins()
        rows = (RunRow(**dict(zip(_COLUMNS, row, strict=True))) for row in found)
        return [replace(row, twin=_other(twins.get(row.run_id, ()), row.folder)) for row in rows]

    def find(self, name: str) -> RunRow:
        """Return the run that a user means: by id, folder, the last letters of an id, or `last`.

        Raises:
            UsageError: no such run, or several.
            MissingError: its record cannot be read.
        """
        rows = self.rows()
        readable = [row for row in rows if row.problem is None]
        if name == "last" and readable:
            return readable[0]
        found = [row for row in rows if name == row.folder] or [row for row in rows if name == row.run_id]
        if not found and len(name) >= _MIN_PART:
            found = [row for row in rows if row.run_id.endswith(name) or row.run_id.startswith(name)]
        if len(found) > 1:
            folders = ", ".join(row.folder for row in found[:5])
            raise UsageError(f"{name!r} is {len(found)} runs: {folders}.", next_step="Give the folder's whole name.")
        if not found:
            recent = ", ".join(row.run_id for row in readable[:3]) or "none yet"
            raise UsageError(
                f"There is no run {name!r}.", next_step=f"The latest runs: {recent}. `redline runs` lists all."
            )
        if found[0].problem is not None:
            raise MissingError(
                f"The record of {name} cannot be read: {found[0].problem}.",
                next_step=f"Look into {self.runs_dir / found[0].folder}, or choose another run.",
            )
        return found[0]

    def _twins(self) -> dict[str, tuple[str, ...]]:
        query = (
            "SELECT run_id, folder FROM runs WHERE run_id IN (SELECT run_id FROM runs GROUP BY 1 HAVING count(*) > 1)"
        )
        twins: dict[str, tuple[str, ...]] = {}
        for run_id, folder in self._db.execute(query):
            twins[run_id] = (*twins.get(run_id, ()), folder)
        return twins

    def _refresh(self) -> None:
        known = dict(self._db.execute("SELECT folder, stamp FROM runs"))
        open_ended = {folder for (folder,) in self._db.execute("SELECT folder FROM runs WHERE exit_code IS NULL")}
        present = dict(_stamps(self.runs_dir))
        changed = [folder for folder, stamp in present.items() if known.get(folder) != stamp or folder in open_ended]
        rows = (_read_row(self.runs_dir / folder) for folder in changed)
        with self._db:
            self._db.executemany(
                "DELETE FROM runs WHERE folder = ?", [(name,) for name in known.keys() - present.keys()]
            )
            self._db.executemany(
                _INSERT, ((*(getattr(row, name) for name in _COLUMNS), present[row.folder]) for row in rows)
            )


def _open(path: Path) -> sqlite3.Connection:
    """Open the index file; a damaged one or one of another version is begun anew, in memory where it cannot be kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=_LOCK_WAIT_S)
        if database.execute("PRAGMA user_version").fetchone() == (_VERSION,):
            database.execute("SELECT stamp FROM runs LIMIT 1")
            return database
        database.close()
    except (OSError, sqlite3.Error):
        pass
    with contextlib.suppress(OSError, sqlite3.Error):
        path.unlink(missing_ok=True)
        return _fresh(str(path))
    return _fresh(":memory:")


def _fresh(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_LOCK_WAIT_S)
    if path != ":memory:":
        Path(path).chmod(0o600)
    with database:
        database.execute(f"CREATE TABLE runs ({', '.join(_COLUMNS)}, stamp, PRIMARY KEY (folder))")
        database.execute(f"PRAGMA user_version = {_VERSION}")
    return database


def _stamps(runs_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield each run folder with what changes when its files do."""
    try:
        entries = list(os.scandir(runs_dir))
    except OSError:
        return
    for entry in entries:
        # A name that is no UTF-8 was not given by redline, and no database could hold it.
        if entry.is_dir(follow_symlinks=False) and entry.name.isprintable():
            yield entry.name, "/".join(_stamp(Path(entry.path) / name) for name in (MANIFEST_FILE, EVENTS_FILE))


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return "-"
    return f"{status.st_size}:{status.st_mtime_ns}"


def _read_row(directory: Path) -> RunRow:
    size = sum(_size(directory / name) for name in (MANIFEST_FILE, EVENTS_FILE))
    try:
        manifest = read_manifest(directory)
    except ValueError as error:
        return RunRow(folder=directory.name, run_id=directory.name, bytes=size, outcome="", problem=str(error))
    row = RunRow(
        folder=directory.name,
        run_id=manifest.run_id,
        command=manifest.command,
        started_at=manifest.started_at,
        slug=manifest.slug,
        url=manifest.url,
        engine=manifest.engine,
        engine_version=manifest.engine_version,
        rig=str(manifest.rig.get("gpus") or manifest.rig.get("cpu_model") or ""),
        labels=" ".join(manifest.labels),
        bytes=size,
    )
    finished = _read_end(row, directory / EVENTS_FILE)
    return finished or replace(row, outcome="running" if is_being_written(directory) else "cut off")


def _read_end(row: RunRow, path: Path) -> RunRow | None:
    """Return the row with outcome, exit code and summary, when the last whole line is the end of a run."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_LINE_BYTES))
            lines = file.read().splitlines(keepends=True)
    except OSError:
        return None
    for line in reversed(lines):
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            event = json.loads(line)
            payload = event["payload"]
            if event["kind"] == "run.finished" and payload["outcome"] in _ENDED:
                return replace(
                    row,
                    outcome=payload["outcome"],
                    exit_code=int(payload["exit_code"]),
                    summary=str(payload["summary"])[:2000],
                )
            return None
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _where(chosen: RunFilter) -> tuple[str, list[str]]:
    parts, values = ["1"], []
    for name in ("command", "outcome"):
        if (wanted := getattr(chosen, name)) is not None:
            parts.append(f"{name} = ?")
            values.append(wanted)
    if chosen.slug is not None:
        parts.append("slug LIKE ? ESCAPE '!'")
        values.append(_like(chosen.slug))
    if chosen.since is not None:
        parts.append("started_at >= ?")
        values.append(chosen.since)
    for word in (chosen.text or "").split():
        parts.append(f"({' OR '.join(_SEARCHED_LIKE)})")
        values += [_like(word)] * len(_SEARCHED)
    return " AND ".join(parts), values


def _like(part: str) -> str:
    escaped = part.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def _other(folders: tuple[str, ...], own: str) -> str | None:
    return next((folder for folder in folders if folder != own), None)
