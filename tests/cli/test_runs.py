"""`redline runs` and `redline runs prune`, as a user types them."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redline.cli.runs import parse_since, runs
from redline.errors import UsageError
from redline.record.run import create_run


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "redline" / "runs"


def record(runs_dir: Path, slug: str = "llamacpp/smollm2-135m-cpu-fast", summary: str = "done") -> str:
    with create_run(runs_dir, "bench", url=None, slug=slug) as run:
        run.finish("complete", 0, summary)
    return run.run_id


def call(*arguments: str) -> Result:
    return CliRunner().invoke(runs, arguments, standalone_mode=False)


def test_nothing_recorded_is_said(runs_dir: Path) -> None:
    assert call().output == "Nothing was recorded yet.\n"


def test_runs_are_listed_and_filtered(runs_dir: Path) -> None:
    fast = record(runs_dir)
    other = record(runs_dir, slug="llamacpp/smollm2-135m-cpu-max")
    assert fast in call().output
    shown = call("--slug", "cpu-max").output
    assert other in shown
    assert fast not in shown
    assert call("--outcome", "failed").output == "No run matches.\n"
    assert [row["run_id"] for row in json.loads(call("--slug", "max", "--json").output)] == [other]


def test_hostile_text_is_contained(runs_dir: Path) -> None:
    record(runs_dir, summary="\x1b[2J\x1b]0;owned\x07evil\nsecond line " + "x" * 5000)
    output = call().output
    assert "\x1b" not in output
    assert len(output.splitlines()) == 2
    assert all(len(line) < 400 for line in output.splitlines())


def test_unreadable_folders_stay_in_the_list(runs_dir: Path) -> None:
    record(runs_dir)
    (runs_dir / "broken").mkdir()
    assert "broken" in call().output
    assert "manifest.json is missing" in call().output


def test_prune_says_and_does(runs_dir: Path) -> None:
    for _ in range(3):
        record(runs_dir)
    dry = call("prune", "--keep", "1", "--dry-run")
    assert "2 runs would go" in dry.output
    assert len(list(runs_dir.iterdir())) == 3
    assert "2 runs removed" in call("prune", "--keep", "1").output
    assert len(list(runs_dir.iterdir())) == 1


def test_prune_wants_to_know_what_to_spare(runs_dir: Path) -> None:
    with pytest.raises(UsageError):
        CliRunner().invoke(runs, ["prune"], standalone_mode=False, catch_exceptions=False)


def test_times_are_dates_or_ages() -> None:
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert parse_since("2d", now) == "2026-11-27T12:00:00+00:00"
    assert parse_since("30m", now) == "2026-11-29T11:30:00+00:00"
    assert parse_since("2026-11-01T00:00:00Z") == "2026-11-01T00:00:00+00:00"
    with pytest.raises(UsageError):
        parse_since("yesterday")
