"""Bundles with any value anywhere replaced by a hostile one: taken in, or refused with a sentence; never a crash."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.ops.test_submission import runs

from redline.catalog.load import load_catalog
from redline.errors import RedlineError
from redline.ops.evidence import import_submission, read_submission
from redline.record.codec import from_json, jsonable
from redline.report.submission import Submission, digest_of, make_submission

CATALOG = load_catalog()
TRUE = jsonable(make_submission(runs(CATALOG, boots=1), made_at="2026-11-29T00:00:00+00:00"))
LONG = "x" * 4000  # longer ones are tests of their own
EVIL: tuple[Any, ...] = (
    None, "", "\x1b[2J</td><script>", "../../x", LONG, "many", -1, 0, 10**30, 1e308, True, [], {}, [None],
    {"__class__": {"value": 1, "origin": "x"}}, {"key": {"value": 1, "origin": "x"}}, "2026-11-29", "NaN",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where the values of a document are; of the samples the first one only."""
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value[:1]):
            yield from places(item, (*path, index))


PLACES = [path for path in places(TRUE) if path]


def spoilt(path: tuple[Any, ...], evil: Any) -> Any:
    document = json.loads(json.dumps(TRUE))
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = evil
    return document


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PLACES), st.sampled_from(EVIL))
@example(("resolved",), {"__class__": {"value": 1, "origin": "x"}})
@example(("resolved",), {"key": {"value": 1, "origin": "x"}})
@example(("rig", "gpus"), "NVIDIA GeForce RTX 3090 999999999999999")
@example(("rig",), {"cpus": "many"})
@example(("engine_version",), "\x1b[2J")
def test_any_value_anywhere_is_taken_or_refused(tmp_path: Path, path: tuple[Any, ...], evil: Any) -> None:
    file, folder = tmp_path / "x.json", tmp_path / "catalog"
    document = spoilt(path, evil)
    try:
        signed = from_json(Submission, document)
        document["submission_id"] = digest_of(signed)
    except (ValueError, RecursionError):
        pass  # not of the form: it is refused when it is read
    file.write_text(json.dumps(document))
    for old in folder.glob("*"):
        old.unlink()
    try:
        found = import_submission(CATALOG, read_submission(file), folder, source="x")
        said = [doubt.message for doubt in found.doubts]
    except RedlineError as error:
        said = [error.message]
    assert all("\x1b" not in words and len(words) < 600 for words in said)
    for written in folder.glob("*"):
        assert "\x1b" not in written.read_text()
        assert "\\x1b" not in written.read_text().lower()
        assert "\\e" not in written.read_text()
        assert written.stat().st_size < 20_000


@pytest.mark.parametrize("text", ['{"a": 1e999}', '{"samples": ' + "[" * 20_000, "\ufeff{}", '{"a": NaN}'])
def test_odd_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(RedlineError):
        read_submission(path)


@pytest.mark.parametrize("path", [("note",), ("engine_version",), ("rig", "gpus"), ("slug",), ("boots", 0, "failure")])
def test_huge_texts_stay_small(tmp_path: Path, path: tuple[Any, ...]) -> None:
    document = spoilt(path, "x" * 3_000_000)
    document["submission_id"] = digest_of(from_json(Submission, document))
    (tmp_path / "x.json").write_text(json.dumps(document))
    found = import_submission(CATALOG, read_submission(tmp_path / "x.json"), tmp_path / "catalog")
    assert all(len(doubt.message) < 600 for doubt in found.doubts)
    assert all(written.stat().st_size < 20_000 for written in (tmp_path / "catalog").glob("*"))
