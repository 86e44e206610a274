"""Runs on disk, written by the recorder itself."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from redline.record.run import Outcome, create_run

MakeRun = Callable[..., Path]


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """An empty folder of runs."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def make_run(runs_dir: Path) -> MakeRun:
    """Record a whole run and return its folder; `outcome=None` leaves its end unwritten."""

    def make(
        command: str = "bench",
        *,
        payloads: Sequence[object] = (),
        outcome: Outcome | None = "complete",
        summary: str = "done",
        **conditions: Any,
    ) -> Path:
        conditions.setdefault("slug", "llamacpp/smollm2-135m-cpu-fast")
        with create_run(runs_dir, command, url="http://127.0.0.1:8120", **conditions) as run:
            for value in payloads:
                run.append(value)
            if outcome is not None:
                run.finish(outcome, 0 if outcome == "complete" else 1, summary)
        return run.directory

    return make
