"""Searches a tier's settings jointly: every combination is planned, the feasible ones are started and measured in turn.

What the planner or a guard refuses is shown and never started. Boots of later rounds run backwards, so that a rig that
warms up slows every point alike. What was started here is stopped again, whatever ends the search.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from redline.bench.quick import BenchSample
from redline.bench.regime import Regime
from redline.bench.tune import MOST_POINTS, Measured, TuneBoot, TunePlan, TunePoint, TuneSummary, summarise_tune
from redline.catalog.resolve import find_tier, resolve
from redline.catalog.types import Catalog, DrafterKind
from redline.errors import EngineStartError, RedlineError, RefusedError, UsageError
from redline.guard.finding import Severity
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord
from redline.launch.stop import stop
from redline.ops.bench import BenchJob, bench_regime
from redline.ops.events import Event, ProofEvent, RunSaved, SampleDone
from redline.ops.prepare import UpRequest, prepare
from redline.ops.server_events import Started
from redline.ops.servers import target_of
from redline.ops.up import up
from redline.plan.types import Verdict
from redline.probe.memory import ServerMemory
from redline.record.codec import from_json
from redline.record.reading import read_events, read_manifest
from redline.record.run import Run
from redline.settings import Settings, Sourced

REGIME_NAME: Final = "tune-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointBegins:
    """A point is about to be started, the `number`-th start of `total`."""

    point: TunePoint
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneDone:
    """The search is over."""

    summary: TuneSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneJob:
    """A search, the switches that lift refusals, how long it may take, and what an earlier one already measured."""

    plan: TunePlan
    overrides: tuple[str, ...] = ()
    budget_s: float | None = None
    earlier: Measured = field(default_factory=Measured)


TuneEvent = Event | ProofEvent | PointBegins | TuneDone


def default_axes(catalog: Catalog, settings: Settings, slug: str) -> dict[str, tuple[str, ...]]:
    """Return what is searched when nothing is named: how the tier drafts.

    Raises:
        UsageError: it drafts nothing, so there is no setting to start from.
    """
    tier = resolve(catalog, slug, settings.layers)
    drafter, depth = catalog.drafters[tier.drafter.value], tier.spec_n.value
    if drafter.lookup:
        keys = (drafter.lookup.key_tokens, drafter.lookup.key_tokens + 2)
        depths = sorted({depth // 2, depth, depth * 2} - {0})
        return {"SPEC_N": ("0", *map(str, depths)), "LOOKUP_KEY": tuple(map(str, keys))}
    if drafter.kind is DrafterKind.MTP:
        return {"SPEC_N": tuple(str(n) for n in range(5))}
    if depth:
        return {"SPEC_N": ("0", str(depth)), "MAX_NUM_SEQS": ("1", "2")}
    raise UsageError(
        f"{tier.slug} drafts nothing, so there is nothing to try without being told.",
        next_step="Name settings with their values: --vary MAX_MODEL_LEN=4096,8192 --vary KV_CACHE_DTYPE=f16,q8_0.",
    )


def with_point(settings: Settings, point: Mapping[str, str]) -> Settings:
    """Return settings with a point's values on top of everything else."""
    own = {name: Sourced(value, f"cli:--vary {name}") for name, value in point.items()}
    return replace(settings, layers=replace(settings.layers, cli={**settings.layers.cli, **own}))


def plan_points(catalog: Catalog, settings: Settings, job: TuneJob) -> tuple[TunePoint, ...]:
    """Return every point with its feasibility; nothing is started or stopped.

    Raises:
        UsageError: more points than a search may have, or no such tier.
    """
    found = job.plan.points()
    if len(found) > MOST_POINTS:
        raise UsageError(f"{len(found)} points are more than a search may have ({MOST_POINTS}).")
    find_tier(catalog, job.plan.slug)
    points: list[TunePoint] = []
    seen: dict[tuple[str, ...], int] = {}
    for number, values in enumerate(found, start=1):
        point, argv = _planned(catalog, settings, job, number, values)
        if not point.refused and argv in seen:
            point = replace(point, refused=f"the same command line as point {seen[argv]}")
        points.append(point)
        if not point.refused:
            seen[argv] = number
    return tuple(points)


def _planned(
    catalog: Catalog, settings: Settings, job: TuneJob, number: int, point: Mapping[str, str]
) -> tuple[TunePoint, tuple[str, ...]]:
    request = UpRequest(slug=job.plan.slug, overrides=job.overrides, measure=False)
    try:
        prepared = prepare(catalog, with_point(settings, point), request)
    except UsageError as error:
        why = error.message
        return TunePoint(number=number, settings=point, refused=why, context_tokens=0, planned_bytes=None), ()
    fit = prepared.fit
    refusals = [finding.message for finding in prepared.findings if finding.severity is Severity.REFUSE]
    if not refusals and fit.verdict is Verdict.UNKNOWN:
        refusals = [f"the planner does not know it: {'; '.join(fit.reasons)}"]
    needs = [device.need_bytes for device in fit.devices]
    planned = TunePoint(
        number=number,
        settings=dict(point),
        refused="; ".join(refusals),
        context_tokens=prepared.tier.max_model_len.value,
        planned_bytes=max(needs, default=None),
    )
    return planned, prepared.plan.argv


def tune(catalog: Catalog, settings: Settings, run: Run, job: TuneJob) -> Iterator[TuneEvent]:
    """Yield every step, then the table. Ctrl-C records the table of what there is; no server is left behind.

    Raises:
        UsageError: more points than a search may have, or no such tier.
    """
    points = plan_points(catalog, settings, job)
    measured = Measured(list(job.earlier.boots), list(job.earlier.samples))
    run.append(job.plan)
    for row in (*points, *measured.boots, *measured.samples):
        run.append(row)
    try:
        stopped = yield from _measure_all(catalog, settings, run, job, points, measured)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        run.append(summarise_tune(points, measured, "interrupted"))
        raise
    finally:
        _stop_tier(settings, job.plan.slug)
    summary = summarise_tune(points, measured, stopped)
    run.append(summary)
    yield TuneDone(summary=summary)


def _measure_all(
    catalog: Catalog, settings: Settings, run: Run, job: TuneJob, points: Sequence[TunePoint], measured: Measured
) -> Generator[TuneEvent, None, str]:
    """Yield the steps of every start, and return what ended the search early, or nothing."""
    feasible = [point for point in points if not point.refused]
    started, longest, number = time.monotonic(), 0.0, 0
    for boot in range(job.plan.boots):
        for point in feasible if boot % 2 == 0 else reversed(feasible):
            number += 1
            if measured.done(point.number, boot) or measured.failed(point.number):
                continue
            began = time.monotonic()
            if job.budget_s is not None and began - started + longest > job.budget_s:
                return f"the budget of {job.budget_s / 60:g} min was used up"
            yield PointBegins(point=point, number=number, total=job.plan.boots * len(feasible))
            row = yield from _measure_once(catalog, settings, run, job, point, boot, measured)
            run.append(row)
            measured.boots.append(row)
            longest = max(longest, time.monotonic() - began)
    return ""


def _measure_once(
    catalog: Catalog, settings: Settings, run: Run, job: TuneJob, point: TunePoint, boot: int, measured: Measured
) -> Generator[TuneEvent, None, TuneBoot]:
    server: ServerRecord | None = None
    unwell = False
    request = UpRequest(slug=job.plan.slug, overrides=job.overrides, measure=False)
    _stop_tier(settings, job.plan.slug)
    try:
        for event in up(catalog, with_point(settings, point.settings), request):
            if isinstance(event, Started):
                server = event.server
            if isinstance(event, RunSaved):
                unwell = event.exit_code == 1
            else:
                yield event
    except (EngineStartError, RefusedError) as error:
        return TuneBoot(point=point.number, boot=boot, boot_id="", memory_bytes=None, failed=error.message)
    assert server is not None, "the tier's servers were stopped, so none could be rejoined"
    if unwell:
        why = "its smoke suite failed"
        return TuneBoot(point=point.number, boot=boot, boot_id=server.server_id, memory_bytes=None, failed=why)
    bench = BenchJob(
        target=target_of(server, settings),
        boot_id=server.server_id,
        thinking_switch=catalog.models[find_tier(catalog, job.plan.slug).model].capabilities.thinking.offered,
        prefill=False,
    )
    own: list[BenchSample] = []
    for step in bench_regime(bench, run, regime_of(job.plan)):
        if isinstance(step, SampleDone):
            own.append(step.sample)
            yield step
    measured.samples.extend(own)
    held = ServerMemory(server.url, server.engine_process.pid if server.engine_process else None).sample()
    return TuneBoot(
        point=point.number,
        boot=boot,
        boot_id=server.server_id,
        memory_bytes=held.gpu_bytes or held.resident_bytes,
        failed="" if any(sample.decode_tok_s for sample in own) else "no request gave a rate",
    )


def regime_of(plan: TunePlan) -> Regime:
    """Return how each start is measured: the same prompts every time, greedy."""
    return Regime(
        name=REGIME_NAME,
        classes=plan.classes,
        max_tokens=dict.fromkeys(plan.classes, plan.max_tokens),
        temperature=0.0,
        seed=plan.seed,
        runs=plan.prompts,
    )


def _stop_tier(settings: Settings, slug: str) -> None:
    """Stop the tier's servers: each point is a start of its own, and none is left behind."""
    for folder, record in running_servers(settings.servers_dir):
        if record.slug == slug:
            with suppress(RedlineError):
                stop(folder, record)


def read_earlier(runs_dir: Path, run_id: str) -> tuple[TunePlan, Measured]:
    """Return the plan of an earlier search and what it measured; starts that were cut off count as not made.

    Raises:
        UsageError: no such run, or none of a search.
    """
    folder = runs_dir / run_id
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        raise UsageError(f"There is no run {run_id} to go on with: {error}.", next_step="`redline runs`.") from None
    plan: TunePlan | None = None
    found = Measured()
    for event in read_events(folder):
        if event.kind == "tune.plan":
            plan = from_json(TunePlan, event.payload)
        elif event.kind == "tune.boot":
            found.boots.append(from_json(TuneBoot, event.payload))
        elif event.kind == "bench.sample":
            found.samples.append(from_json(BenchSample, event.payload))
    if plan is None:
        raise UsageError(f"Run {run_id} is no search but `{manifest.command}`.", next_step="`redline runs` lists them.")
    found.boots = [row for row in found.boots if not row.failed]  # what failed is tried again
    whole = {row.boot_id for row in found.boots}
    found.samples = [sample for sample in found.samples if sample.boot_id in whole]
    return plan, found
