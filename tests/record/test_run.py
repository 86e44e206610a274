import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from redline.record.codec import from_json, jsonable
from redline.record.event import kind_of, payload
from redline.record.manifest import FieldRecord, RunManifest
from redline.record.reading import read_events, read_manifest
from redline.record.run import EVENTS_FILE, MANIFEST_FILE, create_run


@payload("test.note")
@dataclass(frozen=True, slots=True)
class Note:
    text: str


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    with create_run(
        tmp_path, "verify", url="http://127.0.0.1:1", slug="a/b", resolved={"port": FieldRecord(8120, "env:PORT")}
    ) as run:
        run.append(Note("first"))
        run.append(Note("zweite Zeile \u2713\nwith a newline"))
        run.finish("complete", 0, "all well")
    events = list(read_events(run.directory))
    assert [event.kind for event in events] == ["test.note", "test.note", "run.finished"]
    assert [event.seq for event in events] == [0, 1, 2]
    assert events[1].payload == {"text": "zweite Zeile \u2713\nwith a newline"}
    manifest = read_manifest(run.directory)
    assert manifest == run.manifest
    assert manifest.resolved["port"] == FieldRecord(8120, "env:PORT")


def test_a_torn_last_line_ends_the_events_and_nothing_else(tmp_path: Path) -> None:
    with create_run(tmp_path, "bench", url=None) as run:
        run.append(Note("whole"))
    with (run.directory / EVENTS_FILE).open("a") as file:
        file.write('{"schema_version":1,"seq":1,"ti')
    assert [event.payload for event in read_events(run.directory)] == [{"text": "whole"}]


@pytest.mark.parametrize(
    ("error", "outcome", "code"), [(KeyboardInterrupt(), "interrupted", 130), (ValueError("odd"), "failed", 4)]
)
def test_a_run_that_is_broken_off_says_how(tmp_path: Path, error: BaseException, outcome: str, code: int) -> None:
    with pytest.raises(type(error)), create_run(tmp_path, "up", url=None) as run:
        raise error
    *_, last = read_events(run.directory)
    assert last.payload["outcome"] == outcome
    assert last.payload["exit_code"] == code


def test_a_manifest_with_a_key_of_its_own_is_refused(tmp_path: Path) -> None:
    with create_run(tmp_path, "up", url=None) as run:
        pass
    data = json.loads((run.directory / MANIFEST_FILE).read_text())
    (run.directory / MANIFEST_FILE).write_text(json.dumps({**data, "surprise": 1}))
    with pytest.raises(ValueError, match="surprise"):
        read_manifest(run.directory)


def test_two_payloads_cannot_share_a_kind() -> None:
    with pytest.raises(ValueError, match=r"test\.note is registered"):

        @payload("test.note")
        @dataclass(frozen=True)
        class Other:
            text: str


def test_what_was_never_registered_cannot_be_recorded() -> None:
    with pytest.raises(KeyError):
        kind_of(object())


def test_nothing_is_written_as_its_repr() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        jsonable({"a": object()})


def test_reading_is_strict_about_types() -> None:
    good = jsonable(
        RunManifest(
            schema_version=1,
            run_id="r",
            command="up",
            started_at="now",
            redline_version="0",
            definitions_version=1,
            url=None,
        )
    )
    assert from_json(RunManifest, good).run_id == "r"
    with pytest.raises(ValueError, match="schema_version"):
        from_json(RunManifest, {**good, "schema_version": "1"})
