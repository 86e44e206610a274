"""How long the index of many runs and the rendering of a full report take, on records made up for the purpose.

    .venv/bin/python benchmarks/records.py            # 1,000 runs; wall seconds, one line each

Aims: the index of 1,000 runs in under 5 s, the page in under 2 s and under 1.5 MB.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redline.bench.quick import BenchSample
from redline.checks.check import CheckResult, CheckStatus
from redline.launch.outcome import ServerMemory, ServerStarted, StageTime
from redline.record.identity import find_identity
from redline.record.index import RunIndex
from redline.record.reading import load_run
from redline.record.redact import Redactor
from redline.record.run import create_run
from redline.report.build import build_report
from redline.report.html import render_html
from redline.workload.prompts import PromptClass


def record(runs_dir: Path, number: int) -> Path:
    """Write one run of a usual size: 8 checks, 24 requests, 24 readings of memory."""
    server = f"server-{number // 3}"
    stages = tuple(StageTime(stage=name, begin_s=at, end_s=at + 1) for at, name in enumerate(("loading", "warming")))
    argv = tuple(f"--flag-{n}" for n in range(30))
    with create_run(
        runs_dir, "up", url=None, slug=f"bench/model-cpu-t{number % 4}", server_id=server, argv=argv
    ) as run:
        run.append(ServerStarted(server_id=server, ready_s=2.0, memory_bytes=2**28, stages=stages))
        for place in range(8):
            run.append(
                CheckResult(
                    check_id=f"check.{place}",
                    title=f"check {place}",
                    status=CheckStatus.PASS,
                    message="as it should be, at /home/someone/models/x.gguf",
                    failure_class="none",
                )
            )
        for index in range(6):
            for kind in PromptClass:
                run.append(_sample(kind, index))
                run.append(ServerMemory(server_id=server, phase="bench", resident_bytes=2**28 + index * 2**20))
        run.finish("complete", 0, "made up")
    return run.directory


def _sample(kind: PromptClass, index: int) -> BenchSample:
    return BenchSample(
        regime="quick-1",
        prompt_class=kind,
        prompt_index=index,
        completion_tokens=128,
        prompt_tokens=40 * 4**index,
        decode_tok_s=80.0 + index,
        prefill_tok_s=300.0,
        ttft_s=0.2,
        drafts=12,
        draft_tokens=84,
        accepted_tokens=60,
        error=None,
        accepted_by_position=(12, 11, 10, 9, 8, 6, 4),
    )


@contextmanager
def timed(words: str) -> Iterator[None]:
    """Print how long the block took."""
    begin = time.perf_counter()
    yield
    print(f"{time.perf_counter() - begin:7.3f} s  {words}")


def main() -> None:
    """Make the records, then time each reader of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs_count: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        runs_dir = Path(folder) / "runs"
        with timed(f"write {runs_count} runs"):
            folders = [record(runs_dir, number) for number in range(runs_count)]
        with timed("index them from nothing"), RunIndex(runs_dir) as index:
            rows = index.rows()
        with timed("index them again, nothing changed"), RunIndex(runs_dir) as index:
            rows = index.rows()
        assert len(rows) == runs_count
        with timed("read 12 runs, redacted"):
            redactor = Redactor(find_identity())
            records = [load_run(path, redactor) for path in folders[:12]]
        with timed("build and render their report"):
            page = render_html(build_report(records, made_at="2026-11-29T00:00:00+00:00", redacted=True))
        print(f"{len(page.encode()) / 1e6:7.3f} MB  the page")


if __name__ == "__main__":
    main()
