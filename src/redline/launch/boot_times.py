"""How long earlier boots of the same slug and engine version took, stage by stage: what the next one is held against.

Kept as `boots.jsonl` beside the folders of the servers. Seconds are of the monotonic clock.
"""

import contextlib
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redline.launch.state import ServerRecord, ServerState, event_seconds
from redline.record.files import write_atomic

BOOTS_FILE: Final = "boots.jsonl"
_LATEST: Final = 5
_KEPT: Final = 200
_READ_BYTES: Final = 256 * 1024
_TIMED: Final = tuple(
    state
    for state in ServerState
    if state not in (ServerState.PLANNED, ServerState.CHECKED, ServerState.FETCHING, ServerState.DRAINING)
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The median of the latest boots: seconds to ready, and how long each stage lasted; `boots` is their number."""

    total_s: float
    stages: Mapping[str, float] = field(default_factory=dict)
    boots: int = 0

    def remaining_s(self, stage: str, in_stage_s: float) -> float | None:
        """Return the seconds to ready from here, or None when it has already taken longer than these stages did."""
        order = [state.value for state in _TIMED]
        if stage not in self.stages:
            return None
        later = sum(seconds for name, seconds in self.stages.items() if order.index(name) > order.index(stage))
        left = self.stages[stage] - in_stage_s
        return left + later if left + later > 0 else None


def stage_seconds(record: ServerRecord, history: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how long each stage of a boot lasted, from the start of the supervisor to ready."""
    marks: list[tuple[str, float]] = []
    for event in history:
        name = str(event["state"])
        if name in {state.value for state in _TIMED} and (not marks or marks[-1][0] != name):
            marks.append((name, event_seconds(record, event)))
        if name == ServerState.READY:
            break
    ends = [seconds for _, seconds in marks[1:]]
    return {name: round(end - begin, 3) for (name, begin), end in zip(marks, ends, strict=False)}


def remember_boot(servers_dir: Path, record: ServerRecord, stages: Mapping[str, float]) -> None:
    """Add a boot that became ready. A disk that takes nothing loses it, and nothing else."""
    row = {"slug": record.slug, "version": record.engine_version, "form": record.form, "stages": dict(stages)}
    path = servers_dir / BOOTS_FILE
    with contextlib.suppress(OSError):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if path.stat().st_size > _READ_BYTES:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_KEPT:]
            write_atomic(path, "\n".join(lines) + "\n")


def expectation(servers_dir: Path, slug: str, version: str, form: str) -> Expectation | None:
    """Return what earlier boots lead to expect, or None without any."""
    rows = [row for row in _rows(servers_dir) if (row["slug"], row["version"], row["form"]) == (slug, version, form)]
    latest = [row["stages"] for row in rows[-_LATEST:]]
    if not latest:
        return None
    names = [state.value for state in _TIMED if any(state.value in stages for stages in latest)]
    medians = {name: statistics.median(float(stages.get(name, 0.0)) for stages in latest) for name in names}
    total_s = statistics.median(sum(map(float, stages.values())) for stages in latest)
    return Expectation(total_s, medians, len(latest))


def _rows(servers_dir: Path) -> list[dict[str, Any]]:
    try:
        lines = (servers_dir / BOOTS_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    rows = []
    for line in lines:
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and {"slug", "version", "form", "stages"} <= row.keys():
                rows.append(row)
    return rows
