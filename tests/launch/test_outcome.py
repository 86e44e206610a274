"""How long each stage of a boot took, from the history that its supervisor wrote."""

import pytest

from redline.launch.outcome import StageTime, stage_times
from redline.launch.state import SCHEMA, ServerRecord, ServerState

RECORD = ServerRecord(
    schema_version=SCHEMA,
    server_id="s",
    slug="test/engine",
    url="http://127.0.0.1:1",
    port=1,
    state=ServerState.READY,
    served_model="m",
    engine="llamacpp",
    engine_version="1",
    created_at=1000.0,
    changed_at=1000.0,
)


def history(*marks: tuple[float, str]) -> list[dict[str, object]]:
    return [{"time": 1000.0 + at, "state": state, "text": ""} for at, state in marks]


def times(*marks: tuple[float, str]) -> list[tuple[str, float, float]]:
    found = stage_times(RECORD, history(*marks))
    return [(stage.stage, round(stage.begin_s, 6), round(stage.end_s, 6)) for stage in found]


def test_a_stage_ends_where_the_next_begins_and_ready_ends_them() -> None:
    found = times((0, "planned"), (0.1, "starting"), (0.2, "starting"), (0.5, "loading"), (2, "ready"), (9, "draining"))
    assert found == [("planned", 0, 0.1), ("starting", 0.1, 0.5), ("loading", 0.5, 2)]


@pytest.mark.parametrize("end", ["failed", "stopped", "draining"])
def test_a_boot_that_fails_has_the_stages_it_reached(end: str) -> None:
    assert times((0, "starting"), (0.5, "loading"), (1.5, end)) == [("starting", 0, 0.5), ("loading", 0.5, 1.5)]


def test_a_boot_under_way_has_the_stages_that_ended() -> None:
    assert times((0, "starting"), (0.5, "loading")) == [("starting", 0, 0.5)]
    assert stage_times(RECORD, []) == ()


def test_a_clock_set_back_gives_no_negative_stage() -> None:
    assert stage_times(RECORD, history((-5, "starting"), (-3, "ready"))) == (
        StageTime(stage="starting", begin_s=0.0, end_s=0.0),
    )
