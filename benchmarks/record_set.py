"""The recorded set of the embedded tiers, and the table of docs/performance.md that is made of it.

    python benchmarks/record_set.py --run            # about an hour on a quiet machine; Ctrl-C, and it goes on later
    python benchmarks/record_set.py --run --tier fast
    python benchmarks/record_set.py --write          # the table into docs/performance.md, from benchmarks/recorded/
    python benchmarks/record_set.py --check          # ends with 1 when the table is not that of the records

Of each tier: `redline report --full` with a soak of ten minutes, on one server; then, on a server of its own since
lookup drafting remembers: with drafting verify full against the tier without it, else the canonical benchmark. What is
kept of a run: its manifest and the events that say what was found, redacted. The page that the report wrote stays in
the state folder; --run says where.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import redline.ops.payloads  # noqa: F401 -- declares every payload that a record may hold
from redline.bench.prefill import PrefillSummary
from redline.bench.quick import ClassSummary
from redline.checks.check import CheckResult, CheckStatus
from redline.checks.soak_verdict import SoakSummary
from redline.checks.stages import FULL, StageEnded
from redline.ops.reference import free_port
from redline.ops.verify import Spent
from redline.record.disclose import disclose
from redline.record.identity import find_identity
from redline.record.reading import RunRecord, load_run
from redline.record.redact import Redactor
from redline.settings import load_settings
from redline.stats.interval import Estimate

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDED: Final = ROOT / "benchmarks" / "recorded"
PAGE: Final = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- begin: benchmarks/record_set.py -->", "<!-- end: benchmarks/record_set.py -->"
TIERS: Final = ("fast", "superfast")
KEPT: Final = (
    "check.result", "check.spent", "bench.regime", "bench.sample", "bench.settled", "bench.summary",
    "bench.prefill", "bench.prefill.summary", "soak.plan", "soak.resumed", "soak.turn", "soak.summary",
    "stages.plan", "stages.ended", "ramp.plan", "ramp.turn", "ramp.summary", "run.finished",
)  # fmt: skip
# Exit codes with which a step is done all the same: a trend that stays open, a class without a rate.
DONE: Final = (0, 3)


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the set, against a fresh server; `name` is the folder that its run is kept in."""

    name: str
    words: tuple[str, ...]


WHOLE: Final = Step("report", ("report", "--full", "--soak-minutes", "10"))
STAGES: Final = tuple(stage.value for stage in FULL)


def steps_of(tier: str) -> tuple[Step, ...]:
    """Return the commands for a tier."""
    if tier.startswith("super"):
        return (WHOLE, Step("reference", ("verify", "--suite", "full", "--reference")))
    return (WHOLE, Step("canonical", ("bench", "--canonical", "--no-prefill")))


def slug_of(tier: str) -> str:
    """Return a tier's slug."""
    return f"llamacpp/smollm2-135m-cpu-{tier}"


class Recorder:
    """Runs the set in a state folder of its own; what is kept already is not run again."""

    def __init__(self, state: Path) -> None:
        self._environ = {
            **os.environ,
            "XDG_STATE_HOME": str(state),
            "MODEL_DIR": str(load_settings().models_dir),
            "PORT": str(free_port()),
        }
        self._runs = state / "redline" / "runs"

    def record(self, tiers: Sequence[str]) -> int:
        """Run what is missing, and keep it; return how many steps failed."""
        failed = 0
        try:
            for tier in tiers:
                for step in steps_of(tier):
                    target = RECORDED / tier / step.name
                    if target.is_dir():
                        print(f"{tier} {step.name}: recorded already")
                    elif not self._take(tier, step, target):
                        failed += 1
        finally:
            self._redline("down", "--all")
        return failed

    def _take(self, tier: str, step: Step, target: Path) -> bool:
        print(f"{tier} {step.name}: redline {' '.join(step.words)}", flush=True)
        self._redline("down", "--all")
        if self._redline("up", slug_of(tier), "--no-measure").returncode:
            print(f"{tier} {step.name}: the server did not start")
            return False
        before = {path.name for path in self._runs.iterdir()}
        done = self._redline(*step.words, shown=True)
        made = [load_run(path) for path in sorted(self._runs.iterdir()) if path.name not in before]
        # With a reference `up` leaves a run of its own; the measuring one is that of the command.
        own = [record for record in made if record.manifest.command.split()[0] == step.words[0]]
        if done.returncode not in (*DONE, 1) or not own:
            print(f"{tier} {step.name}: ended with {done.returncode}, nothing is kept")
            return False
        for ended in own[-1].payloads(StageEnded):
            if ended.run_id is not None:
                keep(self._runs / ended.run_id, target.parent / ended.stage.value)
        keep(own[-1].directory, target)
        print(f"{tier} {step.name}: kept; the run is {own[-1].directory}")
        return done.returncode in DONE

    def _redline(self, *words: str, shown: bool = False) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-P", "-m", "redline", *words]
        return subprocess.run(command, env=self._environ, text=True, capture_output=not shown, check=False)


def keep(directory: Path, target: Path) -> None:
    """Copy a run: its manifest without this machine's paths, the events of the kept kinds, both redacted."""
    redactor = Redactor(find_identity())
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    manifest["argv"] = [word.rpartition("/")[2] if word.startswith("/") else word for word in manifest["argv"]]
    lines = []
    for line in (directory / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["kind"] in KEPT:
            lines.append(json.dumps({**event, "payload": disclose(event["payload"], redactor)}, ensure_ascii=False))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    text = json.dumps(disclose(manifest, redactor), indent=1) + "\n"
    (target / "manifest.json").write_text(text, encoding="utf-8")
    (target / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def table() -> str:
    """Return the tables of all records that there are."""
    records = {tier: _load(tier) for tier in TIERS}
    if not any(records.values()):
        return "Nothing is recorded yet: `python benchmarks/record_set.py --run`.\n"
    days = sorted({run.manifest.started_at[:10] for found in records.values() for run in found.values()})
    versions = sorted({str(run.manifest.engine_version) for found in records.values() for run in found.values()})
    head = (
        f"Recorded {' to '.join(dict.fromkeys((days[0], days[-1])))} with {', '.join(versions)}; intervals are 95 %.\n"
    )
    return "\n".join([head, *_verdicts(records), "", *_speeds(records), "", *_prefills(records)]) + "\n"


Records = dict[str, dict[str, RunRecord]]


def _load(tier: str) -> dict[str, RunRecord]:
    folders = [RECORDED / tier / name for name in (*STAGES, *(step.name for step in steps_of(tier)))]
    return {folder.name: load_run(folder) for folder in folders if folder.is_dir()}


_SUITES: Final = {"verify": "verify full", "reference": "verify full, against no drafter", "stress": "verify stress"}


def _verdicts(records: Records) -> Iterator[str]:
    yield "| tier | suite | verdict | tokens in, out | took | notes |"
    yield "|---|---|---|---|---|---|"
    for tier, found in records.items():
        ended = found["report"].payloads(StageEnded) if "report" in found else ()
        took = {row.stage.value: f"{row.seconds:.0f} s" for row in ended}
        for name, words in _SUITES.items():
            if name in found:
                yield f"| {tier} | {words} | {_suite(found[name], took.get(name, '-'))} |"
        if "soak" in found:
            (summary,) = found["soak"].payloads(SoakSummary)
            words = "; ".join(f"{row.check_id.removeprefix('soak.')} {row.status.value}" for row in summary.results)
            yield f"| {tier} | soak, 10 min | {words} | - | {took.get('soak', '-')} | {summary.statement} |"


def _suite(run: RunRecord, took: str) -> str:
    rows = run.payloads(CheckResult)
    asked = [row for row in rows if row.status is not CheckStatus.SKIP]
    passed = sum(row.status is CheckStatus.PASS for row in asked)
    others = "; ".join(f"{row.check_id} {row.status.value}: {row.message}" for row in asked if row.status != "pass")
    spent = run.payloads(Spent)
    tokens = f"{spent[-1].prompt_tokens:,}, {spent[-1].completion_tokens:,}" if spent else "-"
    skipped = f"{len(rows) - len(asked)} not offered"
    return f"{passed} of {len(asked)} passed | {tokens} | {took} | {'; '.join(filter(None, (others, skipped)))}"


def _speeds(records: Records) -> Iterator[str]:
    yield "| tier | regime | class | decode tok/s | first token s | tokens a drafted step | n |"
    yield "|---|---|---|---|---|---|---|"
    for tier, found in records.items():
        for name in ("canonical", "bench"):
            for row in found[name].payloads(ClassSummary) if name in found else ():
                decode, first, drafted = row.decode_tok_s, row.ttft_s, row.acceptance_length
                numbers = [_number(decode, ".1f"), _number(first, ".2f"), "-" if drafted is None else f"{drafted:.2f}"]
                count = decode.n if decode else 0
                yield f"| {tier} | {row.regime} | {row.prompt_class.value} | {' | '.join(numbers)} | {count} |"


def _prefills(records: Records) -> Iterator[str]:
    yield "| tier | prompt tokens | prefill tok/s | n |"
    yield "|---|---|---|---|"
    for tier, found in records.items():
        for row in found["bench"].payloads(PrefillSummary) if "bench" in found else ():
            rate = row.prefill_tok_s
            yield f"| {tier} | {row.target_tokens} | {_number(rate, '.0f')} | {rate.n if rate else 0} |"


def _number(estimate: Estimate | None, form: str) -> str:
    if estimate is None:
        return "-"
    if estimate.low is None:
        return f"{estimate.mean:{form}}"
    return f"{estimate.mean:{form}} ({estimate.low:{form}} to {estimate.high:{form}})"


def main() -> int:
    """Run the set, or write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tier", action="append", choices=TIERS)
    parser.add_argument("--state", type=Path, default=Path.home() / ".cache" / "redline" / "record-set")
    options: Any = parser.parse_args()
    code = 0
    if options.run:
        code = 1 if Recorder(options.state).record(options.tier or TIERS) else 0
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page = f"{before}{BEGIN}\n\n{table()}\n{END}{after}"
    if options.write:
        PAGE.write_text(page, encoding="utf-8")
    elif options.check and page != PAGE.read_text(encoding="utf-8"):
        print(f"{PAGE.name}: the table is not that of the records; write it with --write")
        return 1
    elif not options.check:
        print(table())
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted: what is recorded is kept, and --run goes on with the rest")
