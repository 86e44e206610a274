"""docs/gpu.md and the catalogue's boots are what the committed evidence gives, and predictions came first."""

import json
import subprocess
import sys

from report import booted, read_evidence
from tests.gpu.conftest import ROOT


def test_page_and_boots_are_the_written_ones() -> None:
    argv = [sys.executable, str(ROOT / "gpu" / "report.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_every_boot_has_the_blocks_that_its_bytes_give() -> None:
    rows = booted(read_evidence())
    assert len(rows) >= 30
    for line in rows:
        page = line["predicted"]["pool_block_bytes"]
        least = min(worker["available_bytes"] for worker in line["boot"]["workers"])
        assert line["boot"]["num_gpu_blocks"] == least // page, line["row"]
        assert line["boot"]["workers"][0]["num_blocks"] == line["boot"]["num_gpu_blocks"]
        if line["log"].get("block_tokens"):
            assert int(line["log"]["block_tokens"]) == line["predicted"]["block_tokens"]


def test_the_engine_grouped_its_layers_as_predicted() -> None:
    for line in booted(read_evidence()):
        seen = len(line["boot"]["workers"][0]["groups"])
        assert seen == sum(count for _, _, count, _ in line["predicted"]["groups"]), line["row"]


def test_predictions_in_the_evidence_are_the_committed_ones() -> None:
    text = (ROOT / "gpu" / "h200.predictions.jsonl").read_text(encoding="utf-8")
    committed = {row["row"]: row for row in map(json.loads, text.splitlines())}
    for line in read_evidence():
        if line["predicted"]:
            assert {**line["predicted"], "row": line["row"]} == committed[line["row"]]


def test_nothing_in_the_evidence_names_a_machine() -> None:
    for path in [*(ROOT / "gpu" / "evidence").iterdir(), *(ROOT / "docs" / "transcripts").iterdir()]:
        text = path.read_text(encoding="utf-8")
        assert "GPU-" not in text.replace("GPU-0", "")
        assert "/root/" not in text
        assert " /home/" not in text
