"""The published schema is the code's own, and what redline writes is valid by it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from redline.bench.quick import BenchSample
from redline.checks.check import CheckResult, CheckStatus, SkipReason
from redline.ops.schema import published_schemas
from redline.record.run import create_run
from redline.workload.prompts import PromptClass

DOCS = Path(__file__).parents[2] / "docs" / "schema"


def test_the_committed_schema_is_the_current_one() -> None:
    for name, text in published_schemas().items():
        assert (DOCS / name).read_text() == text, "run .venv/bin/python scripts/write_schema.py"


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    return {name: json.loads(text) for name, text in published_schemas().items()}


def _record(tmp_path: Path) -> Path:
    with create_run(tmp_path, "bench", url=None, slug="a/b-c", rig={"cpus": 2, "gpus": None}) as run:
        run.append(
            CheckResult(
                check_id="tools.call",
                title="tools",
                status=CheckStatus.SKIP,
                message="no",
                failure_class="x",
                skip_reason=SkipReason.NOT_OFFERED,
                metrics={"n": 1.0},
            )
        )
        run.append(
            BenchSample(
                regime="quick-1",
                prompt_class=PromptClass.PROSE,
                prompt_index=1,
                completion_tokens=None,
                prompt_tokens=4,
                decode_tok_s=1.5,
                prefill_tok_s=None,
                ttft_s=0.1,
                drafts=None,
                draft_tokens=None,
                accepted_tokens=None,
                error=None,
            )
        )
        run.finish("complete", 0, "done")
    return run.directory


def test_what_is_recorded_is_valid(tmp_path: Path, schemas: dict[str, Any]) -> None:
    folder = _record(tmp_path)
    jsonschema.Draft202012Validator.check_schema(schemas["event.v1.json"])
    jsonschema.validate(json.loads((folder / "manifest.json").read_text()), schemas["manifest.v1.json"])
    for line in (folder / "events.jsonl").read_text().splitlines():
        jsonschema.validate(json.loads(line), schemas["event.v1.json"])


@pytest.mark.parametrize(
    "change",
    [
        {"payload": {"check_id": "x"}},
        {"kind": "no.such.kind"},
        {"payload_version": 2},
        {"schema_version": 2},
        {"surprise": 1},
    ],
)
def test_what_is_not_of_the_form_is_refused(tmp_path: Path, schemas: dict[str, Any], change: dict[str, Any]) -> None:
    line = json.loads((_record(tmp_path) / "events.jsonl").read_text().splitlines()[0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**line, **change}, schemas["event.v1.json"])
