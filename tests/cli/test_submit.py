"""`submit`, `evidence import` and `site build`, as a user types them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.ops.test_submission import GPU
from tests.ops.test_submission import runs as gpu_runs
from tests.report.records import check, sample

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.cli.catalog import tiers
from redline.cli.evidence import evidence
from redline.cli.site import site
from redline.cli.submit import submit
from redline.errors import RefusedError, UsageError
from redline.record.codec import jsonable
from redline.record.run import create_run
from redline.report.submission import make_submission
from redline.settings import Layers
from redline.workload.prompts import PromptClass

SLUG = "llamacpp/smollm2-135m-cpu-fast"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("USER", "marta")
    monkeypatch.chdir(tmp_path)
    version = resolve(load_catalog(), SLUG, Layers()).engine_version.value
    runs_dir = tmp_path / "state" / "redline" / "runs"
    conditions = {"slug": SLUG, "server_id": "s", "engine": "llamacpp", "engine_version": version}
    with create_run(runs_dir, "bench", url="http://127.0.0.1:1", argv=("x", "/home/marta/m"), **conditions) as run:
        run.append(check("chat.basic", message="ran for marta"))
        for index in range(3):
            run.append(sample(PromptClass.PROSE, index, 80.0 + index))
        run.finish("complete", 0, "done")
    return tmp_path


def call(command: object, *arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(command, arguments, standalone_mode=False, catch_exceptions=False)  # type: ignore[arg-type]
    return int(found.return_value or 0), found.output


def test_what_is_submitted_is_shown_first_and_taken_out(home: Path) -> None:
    code, output = call(submit, "last", "--yes", "--note", "marta's rig")
    assert code == 0
    assert "-" in output
    assert "marta" in output  # in the diff, on the side that stays here
    written = sorted((home / "submission").iterdir())
    assert [path.suffix for path in written] == [".json", ".md"]
    assert all("marta" not in path.read_text() for path in written)


def test_nothing_is_written_without_consent(home: Path) -> None:
    with pytest.raises(RefusedError):
        call(submit, "last")
    assert not (home / "submission").exists()


def test_a_submission_is_taken_in_once(home: Path) -> None:
    call(submit, "last", "--yes")
    (bundle,) = (home / "submission").glob("*.json")
    code, output = call(evidence, "import", str(bundle), "--dry-run")
    assert (code, "nothing was written" in output) == (0, True)
    code, output = call(evidence, "import", str(bundle), "--source", "issue 1")
    assert code == 0
    assert "decode_narrative" in output
    assert "still needs" in output
    code, output = call(evidence, "import", str(bundle), "--json")
    assert code == 1
    assert json.loads(output)["doubts"][0]["rule"] == "duplicate"


def test_what_counts_lifts_the_status_that_tiers_shows(home: Path) -> None:
    made = make_submission(gpu_runs(load_catalog()), made_at="2026-11-30T00:00:00+00:00")
    bundle = home / "gpu.json"
    bundle.write_text(json.dumps(jsonable(made)))

    def status() -> tuple[str, bool]:
        rows = json.loads(call(tiers, "dual-ultrafast", "--json")[1])
        (row,) = [row for row in rows if row["slug"] == GPU]
        return row["status"], row["speed"]["counts"]

    assert status() == ("experimental", False)
    code, output = call(evidence, "import", str(bundle))
    assert code == 0, output
    assert status() == ("caveats", True)
    assert "caveats" in call(tiers, "dual-ultrafast")[1]


def test_an_edited_submission_is_refused(home: Path) -> None:
    call(submit, "last", "--yes")
    (bundle,) = (home / "submission").glob("*.json")
    bundle.write_text(bundle.read_text().replace("80.0", "90.0"))
    code, output = call(evidence, "import", str(bundle))
    assert code == 1
    assert "refused  digest" in output


def test_a_run_of_no_tier_cannot_be_submitted(home: Path) -> None:
    with create_run(home / "state" / "redline" / "runs", "bench", url="http://127.0.0.1:1") as run:
        run.finish("complete", 0, "")
    with pytest.raises(UsageError, match="cannot be submitted"):
        call(submit, run.run_id, "--yes")


def test_a_site_is_built(home: Path) -> None:
    code, output = call(site, "build", "--out", str(home / "site"))
    assert code == 0
    assert output.splitlines()[-1].startswith(str(home / "site" / "index.html"))
