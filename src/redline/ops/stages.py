"""Takes a server through the stages of a whole report, and says before each whether the server is still alive.

Each stage is a run of its own; the report's run holds how they ended. It can be gone on with after Ctrl-C or a kill:
stages that came to their end keep their verdict, a soak goes on where it was, the others begin anew.
"""

import asyncio
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from redline.bench.quick import QuickRegime
from redline.bench.regime import HONEST_GREEDY
from redline.checks.ramp import RampPlan
from redline.checks.soak import SoakPlan
from redline.checks.stages import (
    SETTLED,
    Stage,
    StageBegan,
    StageEnded,
    StagesPlan,
    StageState,
    state_of,
)
from redline.checks.suites import Suite
from redline.errors import ExitCode, RedlineError, UsageError
from redline.launch.outcome import ServerMemory
from redline.ops.bench import bench_quick, bench_regime
from redline.ops.events import ChecksDone, Measured, RampDone, SoakDone
from redline.ops.prove import Subject, bench_job, new_seed, recorded, served_by
from redline.ops.ramp import ramp
from redline.ops.soak import Earlier, read_earlier, soak
from redline.ops.verify import verdict_of, verify
from redline.probe.client import Client
from redline.probe.exchange import ChatRequest
from redline.probe.memory import ServerMemory as MemoryProbe
from redline.record.index import RunFilter, RunIndex
from redline.record.manifest import DEFINITIONS_VERSION
from redline.record.plain import plain_line
from redline.record.reading import RunRecord, load_run
from redline.record.run import Run
from redline.settings import Settings

REPORT_COMMAND: Final = "report"
_SUITES: Final = {Stage.SMOKE: Suite.SMOKE, Stage.VERIFY: Suite.FULL, Stage.STRESS: Suite.STRESS}
_GATE_S: Final = 60.0
_LOOK_BACK: Final = 5
_REASON: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProgress:
    """A stage has come so far; `total` is None where the clock decides, `words` what it is at."""

    stage: Stage
    number: int
    total: int | None
    words: str


StageEvent = StageBegan | StageProgress | StageEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStages:
    """What an earlier report leaves to go on with: its plan, verdicts that stand, and a soak that was cut off."""

    run_id: str
    plan: StagesPlan
    settled: tuple[StageEnded, ...]
    soak_run: str | None


def run_stages(
    settings: Settings, subject: Subject, run: Run, plan: StagesPlan, earlier: EarlierStages | None = None
) -> Iterator[StageEvent]:
    """Yield how each stage goes. Everything is on record before it is yielded; Ctrl-C records where it was."""
    process = process_of(subject)
    run.append(replace(plan, process=process, resumes=earlier.run_id if earlier else None))
    settled = (
        {row.stage: replace(row, earlier=row.earlier or earlier.run_id) for row in earlier.settled} if earlier else {}
    )
    dead: str | None = None
    for stage in plan.stages:
        if stage in settled:
            ended = settled[stage]
        else:
            dead = dead or gate(subject, process)
            if dead is not None:
                ended = StageEnded(stage=stage, state=StageState.NOT_RUN, reason=dead)
            else:
                ended = yield from _one_stage(settings, subject, run, plan, stage, earlier)
        run.append(ended)
        yield ended


def _one_stage(
    settings: Settings, subject: Subject, run: Run, plan: StagesPlan, stage: Stage, earlier: EarlierStages | None
) -> Generator[StageEvent, None, StageEnded]:
    begun, run_id = time.monotonic(), None

    def ended(state: StageState, words: str, code: int | None = None) -> StageEnded:
        reason = plain_line(words, _REASON)  # a server's own words may be in it
        took = time.monotonic() - begun
        return StageEnded(stage=stage, state=state, reason=reason, run_id=run_id, exit_code=code, seconds=took)

    try:
        before = _soak_before(settings, subject, earlier) if stage is Stage.SOAK else None
        seed = before.plan.seed if before else new_seed()
        with recorded(settings, subject, _command(stage), _seeds(stage, seed)) as own:
            run_id = own.run_id
            began = StageBegan(stage=stage, run_id=own.run_id)
            run.append(began)
            yield began
            events = _play(settings, subject, own, plan, stage, seed, before)
            code, words = yield from _watched(own, subject, stage, events)
            own.finish("complete", int(code), words)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        run.append(ended(StageState.INTERRUPTED, "interrupted"))
        raise
    except RedlineError as error:
        return ended(StageState.BROKEN, error.message, int(error.exit_code))
    except Exception as error:
        run.append(ended(StageState.BROKEN, f"a fault of redline: {type(error).__name__}", int(ExitCode.FAULT)))
        raise
    return ended(state_of(code), words, int(code))


def _command(stage: Stage) -> str:
    return {Stage.SMOKE: "verify", Stage.STRESS: "verify", Stage.QUICK: "bench"}.get(stage, stage.value)


def _seeds(stage: Stage, seed: int) -> dict[str, int]:
    """Return the seeds of a stage by the names that its own command gives them: only those of prompts must agree."""
    if stage is Stage.QUICK:
        return {"prompts": QuickRegime().seed}
    if stage is Stage.BENCH:
        return {"prompts": HONEST_GREEDY.seed or 0}
    return {"checks" if stage in _SUITES else "sessions": seed}


def _play(
    settings: Settings,
    subject: Subject,
    own: Run,
    plan: StagesPlan,
    stage: Stage,
    seed: int,
    before: Earlier | None,
) -> Generator[Any, None, None]:
    """Yield the events of a stage."""
    target, model = subject.target, subject.facts.model
    if stage in _SUITES:
        yield from verify(target, subject.facts, own, suite=_SUITES[stage], seed=seed)
    elif stage is Stage.QUICK:
        yield from bench_quick(target, own, QuickRegime())
    elif stage is Stage.BENCH:
        yield from bench_regime(bench_job(settings, subject, timeout_s=plan.timeout_s), own, HONEST_GREEDY)
    else:
        context = served_by(subject).context_tokens or 8192
        wait_s = plan.timeout_s
        if stage is Stage.RAMP:
            sessions = RampPlan(sessions=plan.ramp_sessions, seed=seed, context_tokens=context, timeout_s=wait_s)
            yield from ramp(target, model, own, sessions, pid=subject.pid)
        else:
            length = {"turns": plan.soak_turns} if plan.soak_minutes is None else {"minutes": plan.soak_minutes}
            whole = SoakPlan(**length, seed=seed, context_tokens=context, timeout_s=wait_s)
            going = before.plan if before else whole
            yield from soak(target, model, own, going, pid=subject.pid, earlier=before)


def _soak_before(settings: Settings, subject: Subject, earlier: EarlierStages | None) -> Earlier | None:
    """Return the soak that was cut off; one that recorded no plan yet had nothing to go on with."""
    if earlier is None or earlier.soak_run is None:
        return None
    try:
        return read_earlier(settings.runs_dir, earlier.soak_run, subject.target)
    except UsageError:
        return None


def _watched(
    own: Run, subject: Subject, stage: Stage, events: Generator[Any, None, None]
) -> Generator[StageEvent, None, tuple[ExitCode, str]]:
    """Turn a stage's events into progress, record memory between its requests, and return its verdict in words."""
    memory = MemoryProbe(subject.target.url, subject.pid)
    server = subject.target.server_id or "unmanaged"
    code, words = ExitCode.INCONCLUSIVE, "it came to no verdict"
    with closing(events):  # so that what a cut-off stage still records stands before its run is closed
        for event in events:
            match event:
                case ChecksDone():
                    code, words = verdict_of(event.results), check_words(event)
                case SoakDone():
                    code, words = verdict_of(event.summary.results), event.summary.statement
                case RampDone():
                    code, words = verdict_of(event.summary.results), f"cache: {event.summary.reuse.value}"
                case Measured():
                    code, words = rate_verdict(event)
            number = getattr(event, "number", None)
            if number is None:
                continue
            held = memory.sample()
            if held.resident_bytes is not None and stage is not Stage.SOAK:  # a soak's turns hold their own
                gpu = () if held.gpu_bytes is None else (held.gpu_bytes,)
                own.append(
                    ServerMemory(server_id=server, phase=stage.value, resident_bytes=held.resident_bytes, gpu_bytes=gpu)
                )
            yield StageProgress(stage=stage, number=number, total=event.total, words=_at(event))
    return code, words


def _at(event: Any) -> str:
    """Return what a stage is at, in a word or two."""
    if hasattr(event, "result"):
        return str(event.result.title)
    if hasattr(event, "turn"):
        return f"session {event.turn.session + 1}"
    sample = event.sample
    prompt_class = getattr(sample, "prompt_class", None)
    return str(prompt_class.value) if prompt_class else "long prompts"


def check_words(event: ChecksDone) -> str:
    """Return a suite's outcome: '9 of 9 applicable passed', with what did not."""
    asked = [row for row in event.results if row.status != "skip"]
    well = [row for row in asked if row.status in ("pass", "warn")]
    others = [row.check_id for row in asked if row not in well]
    tail = f"; not: {', '.join(others)}" if others else ""
    return f"{len(well)} of {len(asked)} applicable passed{tail}"


def rate_verdict(event: Measured) -> tuple[ExitCode, str]:
    """Return the exit code of a benchmark and its rates in a line."""
    rates = [
        f"{row.prompt_class.value} {row.decode_tok_s.mean:.1f}"
        for row in event.summaries
        if row.decode_tok_s is not None
    ]
    if not rates:
        return ExitCode.CHECK_FAILED, "no class has a rate"
    code = ExitCode.DONE if len(rates) == len(event.summaries) else ExitCode.INCONCLUSIVE
    return code, f"{', '.join(rates)} tok/s"


def process_of(subject: Subject) -> str | None:
    """Return which life of the server this is; None where its process cannot be seen."""
    found = MemoryProbe(subject.target.url, subject.pid).sample().process
    return None if found is None else f"{found.pid}/{found.start_ticks}"


def gate(subject: Subject, process: str | None) -> str | None:
    """Return why no further stage can be gone through, or None: it is alive, and still the same process."""

    async def ask() -> str | None:
        async with Client(subject.target) as client:
            request = ChatRequest(messages=({"role": "user", "content": "Say hello."},), max_tokens=8, temperature=0.0)
            exchange = await client.chat(request, timeout_s=_GATE_S)
            return None if exchange.error is None else f"{exchange.error.kind.value}: {exchange.error.message}"

    trouble = asyncio.run(ask())
    if trouble is not None:
        return f"the server no longer answers ({plain_line(trouble, 120)})"
    now = process_of(subject)
    if process is not None and now is not None and now != process:
        return "the server was restarted: another process serves now"
    return None


def find_earlier(settings: Settings, subject: Subject, name: str | None = None) -> EarlierStages | None:
    """Return the last report of this very life of the server that did not come to its end; None where there is none.

    Raises:
        UsageError: the run that `name` means is no such report.
    """
    now = process_of(subject)
    for record in _reports(settings, subject, name):
        (plan, *_) = record.payloads(StagesPlan)
        ended = {row.stage: row for row in record.payloads(StageEnded)}
        settled = tuple(row for row in ended.values() if row.state in SETTLED)
        same = plan.process is None or now is None or plan.process == now
        same = same and record.manifest.definitions_version == DEFINITIONS_VERSION
        if same and not record.writing and len(settled) < len(plan.stages):
            began = {row.stage: row.run_id for row in record.payloads(StageBegan)}
            cut = began.get(Stage.SOAK) if Stage.SOAK not in {row.stage for row in settled} else None
            return EarlierStages(run_id=record.run_id, plan=plan, settled=settled, soak_run=cut)
        if name is None:
            return None  # only the last one counts: what lies before it was given up
    if name is not None:
        raise UsageError(
            f"Run {name} cannot be gone on with: it came to its end, or the server was restarted since.",
            next_step="Begin a new one: leave --resume out.",
        )
    return None


def usual_seconds(settings: Settings, subject: Subject) -> dict[Stage, float]:
    """Return what stages took on this tier or address before, by the last reports that went through them."""
    found: dict[Stage, list[float]] = {}
    for record in _reports(settings, subject, None):
        for row in record.payloads(StageEnded):
            if row.state in SETTLED and row.earlier is None:
                found.setdefault(row.stage, []).append(row.seconds)
    return {stage: median(seconds) for stage, seconds in found.items()}


def _reports(settings: Settings, subject: Subject, name: str | None) -> Iterator[RunRecord]:
    with RunIndex(settings.runs_dir) as index:
        rows = [index.find(name)] if name else index.rows(RunFilter(command=REPORT_COMMAND), limit=4 * _LOOK_BACK)
    seen = 0
    for row in rows:
        same = row.slug == subject.target.slug if subject.target.slug else row.url == subject.target.url
        if not same or row.problem is not None or seen == _LOOK_BACK:
            continue
        try:
            record = load_run(settings.runs_dir / row.folder)
        except ValueError:
            continue
        if record.payloads(StagesPlan):
            seen += 1
            yield record
