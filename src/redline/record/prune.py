"""Which runs may be removed, and their removal. A run that is being recorded is never touched."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redline.record.files import explain_os_error
from redline.record.index import RunRow
from redline.record.reading import is_being_written


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunePlan:
    """What a prune would remove, oldest first, and what it leaves alone because it runs or cannot be read."""

    remove: tuple[RunRow, ...]
    running: tuple[RunRow, ...]
    unreadable: tuple[RunRow, ...]


def plan_prune(rows: Sequence[RunRow], *, keep: int | None, before: str | None, unreadable: bool = False) -> PrunePlan:
    """Return what to remove of `rows`, given newest first.

    `keep` spares that many of the newest; `before` (ISO 8601, UTC) spares what started at that time or later. With
    both, a run goes only when neither spares it. Unreadable folders go only when asked for.
    """
    readable = [row for row in rows if row.problem is None]
    running = tuple(row for row in readable if row.outcome == "running")
    ended = [row for row in readable if row.outcome != "running"]
    old = [row for row in ended[keep or 0 :] if before is None or row.started_at < before]
    broken = tuple(row for row in rows if row.problem is not None)
    return PrunePlan(
        remove=(*reversed(old), *(broken if unreadable else ())),
        running=running,
        unreadable=() if unreadable else broken,
    )


def remove_runs(runs_dir: Path, plan: PrunePlan) -> tuple[RunRow, ...]:
    """Remove the planned folders and return those that are gone; one that has begun to be written stays.

    Raises:
        AccessError: a folder cannot be removed.
    """
    gone = []
    for row in plan.remove:
        folder = runs_dir / row.folder
        if folder.parent != runs_dir or folder.is_symlink() or is_being_written(folder):
            continue
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise explain_os_error(error, folder) from None
        gone.append(row)
    return tuple(gone)
