"""Folders of runs in every bad state, beside good ones: each command uses what can be read, and names what cannot."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.report.records import check, sample

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.cli.compare import compare
from redline.cli.report import report
from redline.cli.runs import runs
from redline.cli.site import site
from redline.cli.submit import submit
from redline.errors import MissingError, UsageError
from redline.launch.outcome import ServerFailed
from redline.record.run import create_run
from redline.settings import Layers
from redline.workload.prompts import PromptClass

FAST, SUPER = "llamacpp/smollm2-135m-cpu-fast", "llamacpp/smollm2-135m-cpu-superfast"
EVIL = "</td><img src=x onerror=alert(1)>\x1b[2J\x1b]8;;http://x\x07 | `@team` #1 " + "ə" * 100_000


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "redline" / "runs"


def make(runs_dir: Path, slug: str = FAST, server: str = "s1", message: str = "fine", rate: float = 80.0) -> Path:
    version = resolve(load_catalog(), FAST, Layers()).engine_version.value
    conditions = {"slug": slug, "server_id": server, "engine": "llamacpp", "engine_version": version}
    with create_run(runs_dir, "bench", url="http://127.0.0.1:1", **conditions) as run:
        run.append(check("chat.basic", message=message, title=message[:60]))
        for index in range(4):
            run.append(sample(PromptClass.PROSE, index, rate + index))
        run.finish("complete", 0, message)
    return run.directory


def torn(folder: Path) -> None:
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-40])


def newer(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 99}))


def headless(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def twin(folder: Path) -> None:
    copy = folder.with_name("copy-of-it")
    copy.mkdir()
    for name in ("manifest.json", "events.jsonl"):
        (copy / name).write_bytes((folder / name).read_bytes())


def renamed_twin(folder: Path) -> None:
    twin(folder)
    folder.rename(folder.with_name("first-of-it"))


def call(command: click.Command, *arguments: str) -> str:
    found = CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)
    return str(found.output)


@pytest.mark.parametrize("spoil", [torn, newer, headless, twin])
def test_a_bad_folder_beside_a_good_one_spoils_nothing(
    runs_dir: Path, spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    good, bad = make(runs_dir), make(runs_dir, server="s2")
    other = make(runs_dir, SUPER, "s3", rate=90.0)
    spoil(bad)
    assert len(json.loads(call(runs, "--json"))) == (4 if spoil is twin else 3)
    assert "decodes prose at" in call(report, FAST)
    assert "81.5" in call(report, FAST, "--row")
    assert "B / A" in call(compare, good.name, other.name)
    call(submit, FAST, "--yes", "--out", str(tmp_path / "out"))
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert "index.html" in call(site, "build", "--out", str(tmp_path / "site"))


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (newer, MissingError, "its manifest has schema 99; this redline reads 1"),
        (headless, MissingError, "manifest.json is missing"),
        (renamed_twin, UsageError, "is 2 runs: "),
    ],
)
def test_asked_for_by_name_it_is_explained(
    runs_dir: Path, spoil: Callable[[Path], None], error: type[Exception], words: str
) -> None:
    bad = make(runs_dir)
    run_id = bad.name
    spoil(bad)
    with pytest.raises(error, match=words):
        call(report, run_id)


def test_a_torn_last_line_is_named_in_the_report(runs_dir: Path) -> None:
    torn(make(runs_dir))
    output = call(report, "last")
    assert "cut off" in output
    assert "torn" in output or "not whole" in output or "no event" in output, output


def test_hostile_and_huge_texts_stay_texts_of_a_sensible_size(runs_dir: Path, tmp_path: Path) -> None:
    folder = make(runs_dir, message=EVIL)
    with create_run(runs_dir, "up", url="http://127.0.0.1:1", slug=FAST, engine="llamacpp", labels=(EVIL,)) as run:
        run.append(
            ServerFailed(server_id="x", reason=EVIL, cause=EVIL, evidence=EVIL, remedies=(EVIL,), log_tail=(EVIL,) * 40)
        )
        run.finish("failed", 6, EVIL)
    for options in ((), ("--no-redact",)):
        call(report, folder.name, run.run_id, "--html", str(tmp_path / "r.html"), *options)
        page = (tmp_path / "r.html").read_text()
        text = call(report, folder.name, run.run_id, *options)
        for shown in (page, text, call(runs)):
            assert "\x1b" not in shown
            assert "<img" not in shown
            assert len(shown.encode()) < 1_500_000
        assert "@team" not in text
    for each in (call(site, "build", "--out", str(tmp_path / "site")), call(report, "last", "--row")):
        assert "\x1b" not in each
