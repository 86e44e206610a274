"""The runner of experiments against a stand-in engine: every row ends in a line, and no row is run twice."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.gpu.conftest import HOST

ROWS: list[dict[str, Any]] = [
    {"id": "good", "kind": "boot", "asked": {}, "measure": [{"what": "decode", "batch": 2, "tokens": 11}]},
    {"id": "raises", "kind": "boot", "asked": {"batched": 1}},
    {"id": "hangs", "kind": "boot", "asked": {"batched": 2}, "timeout_s": 2},
    {"id": "dies", "kind": "boot", "asked": {"batched": 3}},
    {
        "id": "drafts",
        "kind": "boot",
        "asked": {"drafter": "mtp", "depth": 3, "synthetic": 2.6},
        "measure": [
            {"what": "decode", "batch": 1, "tokens": 21, "acceptance": 2.6, "depth": 3, "repeats": 1},
            {"what": "prefill", "prompt": 100, "repeats": 1},
            {"what": "nothing-known"},
        ],
    },
    {"id": "command", "kind": "program", "argv": [sys.executable, "-c", "raise SystemExit(4)"], "lane": "side"},
]


def run(tmp_path: Path, engine: Path, *options: str, rows: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    plan = tmp_path / "plan.yaml"
    stated = [{"est_s": 1, **row} for row in rows or ROWS]
    plan.write_text(yaml.safe_dump({"name": "test", "rows": stated}), encoding="utf-8")
    (tmp_path / "predictions.jsonl").write_text('{"row": "good", "pool_block_bytes": 51380224, "pool_blocks": 1550}\n')
    argv = [sys.executable, str(HOST / "run.py"), str(plan), "--state", str(tmp_path / "state")]
    argv += ["--out", str(tmp_path / "out"), "--engine", str(engine), "--lanes", "gpu0,side", "--seconds", "60"]
    argv += ["--predictions", str(tmp_path / "predictions.jsonl"), *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "out/evidence.jsonl").read_text().splitlines()]
    assert len({line["row"] for line in lines}) == len(lines)
    return {line["row"]: line for line in lines}


@pytest.mark.parametrize("way", [(), ("--no-fork",)])
def test_a_row_that_fails_loses_no_other(tmp_path: Path, engine: Path, way: tuple[str, ...]) -> None:
    lines = run(tmp_path, engine, *way)
    assert set(lines) == {row["id"] for row in ROWS}
    assert lines["good"]["error"] is None
    assert lines["good"]["short"]["blocks"] == lines["good"]["short"]["by_rule"] == 1550
    assert lines["good"]["log"]["available_gib"] == "74.20"
    assert lines["raises"]["error"] == {"type": "ValueError", "text": "no such thing"}
    assert lines["hangs"]["error"]["type"] == "timeout"
    assert lines["dies"]["error"] is not None
    assert lines["command"]["error"]["type"] == "exit 4"


def test_measurements_say_what_was_timed(tmp_path: Path, engine: Path) -> None:
    facts = run(tmp_path, engine)["drafts"]["facts"]
    decode = next(fact for fact in facts if fact["fact"] == "decode")
    # 20 tokens after the first in 2 s, ten drafts: ten steps of 200 ms.
    assert (decode["tok_s"], decode["step_ms"]) == (10.0, 200.0)
    assert next(fact for fact in facts if fact["fact"] == "prefill")["tok_s"] == 200.0
    assert next(fact for fact in facts if fact["fact"] == "failed")["what"] == {"what": "nothing-known"}


def test_what_is_done_is_not_done_again(tmp_path: Path, engine: Path) -> None:
    first = run(tmp_path, engine)
    carried = tmp_path / "carried.jsonl"
    carried.write_text(json.dumps({"row": "later"}) + "\n")
    more = [*ROWS, {"id": "later", "kind": "boot", "asked": {}}, {"id": "new", "kind": "boot", "asked": {}}]
    second = run(tmp_path, engine, "--done", str(carried), rows=more)
    assert set(second) == {*first, "new"}
    assert second["good"] == first["good"]


def test_a_row_cut_off_by_the_end_comes_again(tmp_path: Path, engine: Path) -> None:
    rows = [{"id": "good", "kind": "boot", "asked": {}}, {"id": "long", "kind": "boot", "asked": {"batched": 2}}]
    assert set(run(tmp_path, engine, "--seconds", "10", rows=rows)) == {"good"}
