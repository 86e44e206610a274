"""The search of settings: what is refused is never started, Ctrl-C leaves a table, and a resumed search goes on."""

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Home
from tests.ops.tiny import ANYWAY, FAST, furnish, llama_server

from redline.bench.tune import TunePlan
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.launch.server import running_servers
from redline.ops.tune import TuneJob, default_axes, plan_points
from redline.record.reading import read_events
from redline.settings import load_settings
from redline.workload.prompts import PromptClass

_SUPER = "llamacpp/smollm2-135m-cpu-superfast"


def _job(**vary: tuple[str, ...]) -> TuneJob:
    return TuneJob(
        plan=TunePlan(slug=_SUPER, vary=vary, classes=(PromptClass.EDIT,)), overrides=("--ignore-integrity",)
    )


def test_what_the_planner_refuses_is_shown_and_what_is_the_same_is_started_once(
    catalog: Catalog, tmp_path: Path, free_port: Any
) -> None:
    settings = load_settings(environ={"HOME": str(tmp_path), "PORT": str(free_port())}, working_dir=tmp_path)
    points = plan_points(
        catalog, settings, _job(SPEC_N=("0", "7"), LOOKUP_KEY=("4", "5"), MAX_MODEL_LEN=("8192", "20000"))
    )
    words = {tuple(point.settings.values()): point.refused for point in points}
    assert len(words) == 8
    assert "was trained for, 8192" in words["7", "4", "20000"]
    assert words["0", "5", "8192"] == "the same command line as point 1"
    assert [point.number for point in points if not point.refused] == [1, 5, 7]
    assert default_axes(catalog, settings, _SUPER)["SPEC_N"] == ("0", "3", "7", "14")
    with pytest.raises(UsageError, match="drafts nothing"):
        default_axes(catalog, settings, "llamacpp/smollm2-135m-cpu-fast")


def test_a_search_has_its_limits(catalog: Catalog, tmp_path: Path) -> None:
    settings = load_settings(environ={"HOME": str(tmp_path)}, working_dir=tmp_path)
    with pytest.raises(UsageError, match="100 points are more"):
        plan_points(
            catalog, settings, _job(SPEC_N=tuple(map(str, range(10))), LOOKUP_KEY=tuple(map(str, range(1, 11))))
        )
    (bad,) = plan_points(catalog, settings, _job(SPEC_N=("many",)))
    assert "must be a whole number" in bad.refused


def _payloads(home: Home, run: str, kind: str) -> list[Any]:
    return [event.payload for event in read_events(home.settings.runs_dir / run) if event.kind == kind]


@pytest.mark.real
def test_an_interrupted_search_leaves_a_table_and_no_server_and_goes_on(home: Home, free_port: Any) -> None:
    furnish(home, free_port(), free_port())
    llama_server(home)
    words = ("--vary", "MAX_MODEL_LEN=2048,4096,999999", "--class", "chat", "--prompts", "2", "--tokens", "32")
    with home.start("tune", FAST, *words, *ANYWAY) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "2 of 2" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert running_servers(home.settings.servers_dir) == []
    run = out.split("--resume ")[1].split()[0]
    (first,) = _payloads(home, run, "tune.boot")
    (cut,) = _payloads(home, run, "tune.summary")
    assert cut["stopped"] == "interrupted"
    assert [row["worth_having"] for row in cut["rows"]] == [True, False, False]
    done = home.json("tune", "--resume", run, *ANYWAY)
    assert [bool(row["point"]["refused"]) for row in done["summary"]["rows"]] == [False, False, True]
    boots = _payloads(home, done["run_id"], "tune.boot")
    assert [row["point"] for row in boots] == [1, 2]
    assert boots[0]["boot_id"] == first["boot_id"]
    assert len(_payloads(home, done["run_id"], "bench.sample")) == 4
    assert running_servers(home.settings.servers_dir) == []
