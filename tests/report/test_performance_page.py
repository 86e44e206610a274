"""The table of docs/performance.md is that of the records, and a kept record names nothing of its machine."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.record_set import keep, slug_of, steps_of

from redline.checks.check import CheckResult, CheckStatus
from redline.record.reading import load_run
from redline.record.run import create_run

ROOT = Path(__file__).parents[2]


def test_the_table_is_that_of_the_records() -> None:
    script = str(ROOT / "benchmarks" / "record_set.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_kept_run_reads_as_a_run_and_names_no_path(tmp_path: Path) -> None:
    argv = ("/home/ada/venv/bin/python", "-m", "worker", "--model", "/home/ada/models/tiny.gguf")
    with create_run(tmp_path / "runs", "verify", url=None, slug=slug_of("fast"), argv=argv) as run:
        run.append(
            CheckResult(
                check_id="chat.basic",
                title="basic answer",
                status=CheckStatus.PASS,
                message="read /home/ada/models/tiny.gguf",
                failure_class="garbage or empty answer",
            )
        )
        run.finish("complete", 0, "done")
    keep(run.directory, tmp_path / "kept")
    text = (tmp_path / "kept" / "manifest.json").read_text() + (tmp_path / "kept" / "events.jsonl").read_text()
    assert "ada" not in text
    assert json.loads((tmp_path / "kept" / "manifest.json").read_text())["argv"][0] == "python"
    (result,) = load_run(tmp_path / "kept").payloads(CheckResult)
    assert result.status is CheckStatus.PASS


def test_a_tier_that_remembers_is_not_asked_for_one_prompt_again_and_again() -> None:
    words = {tier: [step.words[0] for step in steps_of(tier)] for tier in ("fast", "superfast")}
    assert words["fast"] == ["report", "bench"]
    assert words["superfast"] == ["report", "verify"]
    assert "--reference" in steps_of("superfast")[1].words
