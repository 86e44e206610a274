"""What a prune may take, and that it never takes a run that is being recorded."""

from collections.abc import Callable
from pathlib import Path

from redline.record.index import RunIndex, RunRow
from redline.record.prune import plan_prune, remove_runs
from redline.record.run import create_run

MakeRun = Callable[..., Path]


def row(day: int, outcome: str = "complete", problem: str | None = None) -> RunRow:
    when = f"2026-11-{day:02}T00:00:00+00:00"
    return RunRow(folder=f"r{day}", run_id=f"r{day}", started_at=when, outcome=outcome, problem=problem)


ROWS = [row(9), row(8, "running"), row(7), row(6, "failed"), row(5, "cut off")]


def removed(**options: object) -> list[str]:
    return [item.folder for item in plan_prune(ROWS, **options).remove]  # type: ignore[arg-type]


def test_keep_spares_the_newest_that_ended() -> None:
    assert removed(keep=2, before=None) == ["r5", "r6"]
    assert removed(keep=9, before=None) == []
    assert removed(keep=0, before=None) == ["r5", "r6", "r7", "r9"]


def test_an_age_spares_what_is_younger() -> None:
    assert removed(keep=None, before="2026-11-07T00:00:00+00:00") == ["r5", "r6"]


def test_with_both_a_run_goes_only_when_neither_spares_it() -> None:
    assert removed(keep=3, before="2026-11-07T00:00:00+00:00") == ["r5"]


def test_running_is_never_planned_and_unreadable_only_when_asked() -> None:
    rows = [*ROWS, row(1, problem="torn")]
    plan = plan_prune(rows, keep=0, before=None)
    assert "r8" not in [item.folder for item in plan.remove]
    assert [item.folder for item in plan.unreadable] == ["r1"]
    asked = plan_prune(rows, keep=0, before=None, unreadable=True)
    assert asked.remove[-1].folder == "r1"


def test_removal_asks_again_whether_a_run_is_under_way(runs_dir: Path, make_run: MakeRun) -> None:
    old = make_run()
    with create_run(runs_dir, "bench", url=None) as run:
        listed = RunRow(folder=run.directory.name, run_id=run.run_id)  # as a list made before it began would have it
        plan = plan_prune([listed, RunRow(folder=old.name, run_id=old.name)], keep=0, before=None)
        assert [item.folder for item in remove_runs(runs_dir, plan)] == [old.name]
        assert run.directory.is_dir()
    assert not old.exists()
    with RunIndex(runs_dir) as index:
        assert [item.folder for item in index.rows()] == [run.directory.name]


def test_nothing_outside_the_folder_of_runs_is_removed(runs_dir: Path, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (runs_dir / "link").symlink_to(outside)
    plan = plan_prune(
        [RunRow(folder="link", run_id="link"), RunRow(folder="../precious", run_id="x")], keep=0, before=None
    )
    assert remove_runs(runs_dir, plan) == ()
    assert outside.is_dir()
