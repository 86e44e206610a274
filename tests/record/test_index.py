"""The index is a cache of the folders: right after any change to them, and never the only place of anything."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from redline.errors import MissingError, UsageError
from redline.record.index import RunFilter, RunIndex, RunRow
from redline.record.run import create_run

MakeRun = Callable[..., Path]


def rows(runs_dir: Path, **wanted: str) -> list[RunRow]:
    with RunIndex(runs_dir) as index:
        return index.rows(RunFilter(**wanted))


def test_rows_follow_the_folders(runs_dir: Path, make_run: MakeRun) -> None:
    assert rows(runs_dir) == []
    first = make_run("up", summary="served it")
    second = make_run("bench", outcome="failed")
    found = {row.folder: row for row in rows(runs_dir)}
    assert (found[first.name].outcome, found[first.name].summary) == ("complete", "served it")
    assert found[second.name].outcome == "failed"
    shutil.rmtree(first)
    assert [row.folder for row in rows(runs_dir)] == [second.name]


def test_unchanged_folders_are_not_read_again(
    runs_dir: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run()
    rows(runs_dir)

    def fail(directory: Path) -> None:
        raise AssertionError(f"{directory} was read again")

    monkeypatch.setattr("redline.record.index.read_manifest", fail)
    assert len(rows(runs_dir)) == 1


@pytest.mark.parametrize("damage", [b"", b"not a database", None])
def test_a_lost_or_damaged_index_is_rebuilt(runs_dir: Path, make_run: MakeRun, damage: bytes | None) -> None:
    make_run()
    rows(runs_dir)
    path = runs_dir.with_name("runs.sqlite")
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert len(rows(runs_dir)) == 1
    assert len(rows(runs_dir)) == 1


def test_an_index_of_another_version_is_rebuilt(runs_dir: Path, make_run: MakeRun) -> None:
    make_run()
    database = sqlite3.connect(runs_dir.with_name("runs.sqlite"))
    database.execute("CREATE TABLE runs (planet)")
    database.execute("PRAGMA user_version = 99")
    database.commit()
    database.close()
    assert len(rows(runs_dir)) == 1


def test_an_index_that_is_held_by_another_process_is_no_obstacle(
    runs_dir: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.record.index._LOCK_WAIT_S", 0.05)
    make_run()
    rows(runs_dir)
    make_run()
    holder = sqlite3.connect(runs_dir.with_name("runs.sqlite"))
    holder.execute("BEGIN EXCLUSIVE")
    assert len(rows(runs_dir)) == 2
    holder.close()


def test_filters(runs_dir: Path, make_run: MakeRun) -> None:
    fast = make_run("bench", summary="quick benchmark of 100 %")
    super_ = make_run("up", slug="llamacpp/smollm2-135m-cpu-superfast", outcome="failed", labels=("experiment:x_y",))
    other = make_run("verify", slug=None)
    assert [row.folder for row in rows(runs_dir, slug="superfast")] == [super_.name]
    assert [row.folder for row in rows(runs_dir, command="verify")] == [other.name]
    assert [row.folder for row in rows(runs_dir, outcome="failed")] == [super_.name]
    assert [row.folder for row in rows(runs_dir, text="100 % BENCH")] == [fast.name]
    assert [row.folder for row in rows(runs_dir, text="x_y")] == [super_.name]
    assert rows(runs_dir, text="x%y") == []
    assert rows(runs_dir, since="2999-01-01T00:00:00+00:00") == []
    assert len(rows(runs_dir, since="2000-01-01T00:00:00+00:00")) == 3


def test_running_cut_off_and_unreadable_are_told_apart(runs_dir: Path, make_run: MakeRun) -> None:
    cut_off = make_run(outcome=None)
    broken = make_run()
    (broken / "manifest.json").write_text("{")
    (runs_dir / "empty").mkdir()
    with create_run(runs_dir, "bench", url=None) as run:
        found = {row.folder: row for row in rows(runs_dir)}
        assert found[run.directory.name].outcome == "running"
        run.finish("complete", 0, "")
    assert found[cut_off.name].outcome == "cut off"
    assert found[broken.name].problem == "manifest.json is torn or no JSON"
    assert found["empty"].problem == "manifest.json is missing"
    assert {row.folder: row for row in rows(runs_dir)}[run.directory.name].outcome == "complete"


def test_two_runs_with_one_id_are_both_listed_and_told_apart(runs_dir: Path, make_run: MakeRun) -> None:
    original = make_run()
    shutil.copytree(original, runs_dir / "copy")
    found = {row.folder: row.twin for row in rows(runs_dir)}
    assert found == {original.name: "copy", "copy": original.name}
    with RunIndex(runs_dir) as index:
        assert index.find("copy").folder == "copy"
        assert index.find(original.name).folder == original.name


def test_find_takes_ids_endings_and_last(runs_dir: Path, make_run: MakeRun) -> None:
    folder = make_run()
    with RunIndex(runs_dir) as index:
        assert index.find(folder.name).folder == folder.name
        assert index.find(folder.name[-3:]).folder == folder.name
        assert index.find("last").folder == folder.name
        with pytest.raises(UsageError, match="There is no run 'zzz'"):
            index.find("zzz")
    (folder / "manifest.json").unlink()
    with RunIndex(runs_dir) as index, pytest.raises(MissingError, match=r"manifest\.json is missing"):
        index.find(folder.name)


def test_an_ambiguous_part_is_refused(runs_dir: Path, make_run: MakeRun) -> None:
    make_run()
    make_run()
    with RunIndex(runs_dir) as index, pytest.raises(UsageError, match="is 2 runs"):
        index.find(index.rows()[0].run_id[:8])


def test_hostile_names_do_not_reach_sql(runs_dir: Path, make_run: MakeRun) -> None:
    make_run(summary="'); DROP TABLE runs; --", slug="x' OR '1'='1")
    assert len(rows(runs_dir, text="DROP TABLE")) == 1
    assert len(rows(runs_dir, slug="' OR '1'='1")) == 1
    assert rows(runs_dir, command="' OR '1'='1") == []
