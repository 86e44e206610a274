"""Records with any value anywhere replaced by a hostile one: every renderer shows the rest, and none of them fails."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.ops.test_submission_hostile import EVIL, places
from tests.report.records import full_record, soak_turn

from redline.checks.stages import FULL, StageBegan, StageEnded, StagesPlan, StageState
from redline.record.codec import jsonable
from redline.record.identity import make_identity
from redline.record.reading import load_run
from redline.record.redact import NoRedactor, Redactor
from redline.record.run import create_run
from redline.report.build import build_report
from redline.report.html import render_html
from redline.report.markdown import render_markdown
from redline.report.row import benchmark_rows

IDENTITY = make_identity(["marta"], ["attic-rig"], ["/home/marta"])
_STAGES = [
    StagesPlan(stages=FULL),
    StageBegan(stage=FULL[0], run_id="2026-11-29-aaa"),
    StageEnded(stage=FULL[0], state=StageState.PASSED, reason="fine", run_id="2026-11-29-aaa"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on disk with something for every section."""
    record = full_record()
    manifest = jsonable(record.manifest)
    kept = ("slug", "server_id", "engine", "engine_version", "rig", "argv", "seeds")
    conditions = {name: manifest[name] for name in kept}
    runs = tmp_path_factory.mktemp("runs")
    with create_run(runs, "up", url=record.manifest.url, resolved=record.manifest.resolved, **conditions) as run:
        for event in record.events[:-1]:
            run.append(event.payload)
        for payload in (*_STAGES, soak_turn(0, resident_bytes=1)):
            run.append(payload)
        run.finish("complete", 0, "done")
    return run.directory


def spoil(document: Any, pick: int, evil: Any) -> Any:
    found = [path for path in places(document) if path]
    path = found[pick % len(found)]
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = evil
    return document


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(-1, 200), st.integers(0, 400), st.sampled_from(EVIL), st.booleans())
@example(-1, 0, {"cpus": "many", "gpus": 3, "memory_gib": "\x1b"}, True)
def test_every_renderer_shows_the_rest(
    tmp_path: Path, whole: Path, line: int, pick: int, evil: Any, redact: bool
) -> None:
    manifest = json.loads((whole / "manifest.json").read_text())
    events = [json.loads(text) for text in (whole / "events.jsonl").read_text().splitlines()]
    if line < 0:
        manifest = spoil(manifest, pick, evil)
    else:
        events[line % len(events)] = spoil(events[line % len(events)], pick, evil)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    try:
        record = load_run(tmp_path, Redactor(IDENTITY) if redact else NoRedactor())
    except ValueError as error:
        assert line < 0
        assert len(str(error)) < 400  # noqa: PT017 -- either way is right
        return
    model = build_report([record], made_at="2026-11-29T20:00:00+00:00", redacted=redact)
    for text in (render_html(model), render_markdown(model), benchmark_rows(model)):
        assert "\x1b" not in text
        assert "</td><script>" not in text
        assert len(text.encode()) < 1_500_000
    assert all(answer.words for answer in model.answers.in_order)
