"""Serving a tier from end to end: choose, check, fetch, replace what is in the way, start, prove, measure.

Nothing that runs is touched before the new server has passed every check that can be made without starting it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from redline.artifacts.disk import tier_artifacts
from redline.artifacts.hub_access import hub_access
from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ensure, locate
from redline.bench.quick import QuickRegime
from redline.catalog.explain import served_model
from redline.catalog.fields import TIER_FIELDS, ResolvedTier
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.errors import EngineStartError, ExitCode, RedlineError
from redline.guard.finding import GuardRefusal, Override, Severity
from redline.launch.docker import has_image, pull_image
from redline.launch.outcome import ServerStarted, stage_times
from redline.launch.server import advance
from redline.launch.state import ServerRecord, ServerState, read_history, read_record
from redline.launch.stop import resident_bytes
from redline.ops.bench import bench_quick
from redline.ops.boot_record import failure_of, watched
from redline.ops.conflicts import Holding
from redline.ops.events import Began, ChecksDone, Event, FilesReady, ImageProgress, Planned, RunSaved
from redline.ops.facts import server_facts
from redline.ops.launching import Switch, prepare_folder, switch
from redline.ops.prepare import Prepared, UpRequest, memory_after_stops, plan_at_home, prepare, same_server
from redline.ops.server_events import AlreadyRunning, Started
from redline.ops.servers import BUSY, lock_path, target_of, wait_ready
from redline.ops.stream import follow_callback
from redline.ops.verify import verdict_of, verify
from redline.record.files import hold_lock
from redline.record.manifest import FieldRecord
from redline.record.run import Run, create_run
from redline.rig.links import rig_record
from redline.rig.types import Rig
from redline.settings import Settings

UP_REGIME: Final = QuickRegime(name="up-1", per_class=6, max_tokens=64)


def up(catalog: Catalog, settings: Settings, request: UpRequest) -> Iterator[Event]:
    """Yield each step of serving a tier; the last event carries the run and its exit code.

    Raises:
        GuardRefusal: nothing was stopped or started.
        EngineStartError: the engine did not become a server; its run is recorded all the same.
        RedlineError: whatever else stood in the way.
    """
    with ExitStack() as lock:
        lock.enter_context(hold_lock(lock_path(settings), BUSY))
        prepared = prepare(catalog, settings, request)
        yield Began(tier=prepared.tier, rig=prepared.rig)
        same = same_server(prepared)
        if same is not None:
            yield from _rejoin(same)
            return
        yield Planned(fit=prepared.fit, findings=prepared.findings)
        if any(finding.severity is Severity.REFUSE for finding in prepared.findings):
            raise GuardRefusal(prepared.findings)
        plan = plan_at_home(settings, request, prepared)
        made_from = conditions(catalog, prepared.tier, prepared.rig, plan)
        with _open_run(settings, request, prepared, made_from) as run:
            folder = prepare_folder(settings, plan, made_from)
            yield from _fetch_all(catalog, settings, request, prepared, folder)
            change = Switch(
                folder,
                plan,
                prepared.orphans,
                prepared.conflicts,
                request.rollback,
                recheck=lambda: memory_after_stops(catalog, request, prepared),
            )
            try:
                record = yield from switch(settings, change)
            except EngineStartError:
                failed = read_record(folder)
                if failed is not None:
                    run.append(failure_of(folder, failed))
                raise
            lock.close()  # the server stands; others may start and stop servers while this one is measured
            yield from _prove(catalog, settings, request, folder, record, run, prepared)


def _rejoin(holding: Holding) -> Iterator[Event]:
    record = holding.record
    if record.state is not ServerState.READY:
        record = yield from wait_ready(holding.folder)
    yield AlreadyRunning(server=record)


def _fetch_all(
    catalog: Catalog, settings: Settings, request: UpRequest, prepared: Prepared, folder: Path
) -> Iterator[Event]:
    """Make files and image present before anything is stopped; the server's record says so meanwhile."""
    advance(folder, ServerState.FETCHING, "fetching what it needs")
    try:
        yield from _fetch(catalog, settings, request, prepared)
        container = prepared.plan.container
        if container is not None and not has_image(container.image):
            for line in pull_image(container.image):
                yield ImageProgress(image=container.image, line=line)
    except RedlineError as error:
        advance(folder, ServerState.FAILED, f"not started: {error.message}")
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        advance(folder, ServerState.STOPPED, "interrupted before it was started")
        raise


def _fetch(catalog: Catalog, settings: Settings, request: UpRequest, prepared: Prepared) -> Iterator[Event]:
    for artifact in tier_artifacts(catalog, prepared.tier):
        if Override.IGNORE_INTEGRITY in request.overrides:
            state = locate(settings.models_dir, artifact)
            if state.present:
                yield FilesReady(artifact=artifact, folder=state.folder, verified=state.ready)
                continue
        yield from fetch_artifact(catalog, settings, artifact.id)


def fetch_artifact(catalog: Catalog, settings: Settings, artifact_id: str) -> Iterator[Event]:
    """Yield the progress of making an artifact present and verified."""

    hub = hub_access(settings)

    def work(report: Any) -> None:
        ensure(catalog, artifact_id, settings.models_dir, report, hub)

    progress: Iterator[FileProgress] = follow_callback(work)
    yield from progress
    state = locate(settings.models_dir, catalog.artifacts[artifact_id])
    yield FilesReady(artifact=catalog.artifacts[artifact_id], folder=state.folder, verified=state.verified)


def _open_run(settings: Settings, request: UpRequest, prepared: Prepared, made_from: dict[str, Any]) -> Run:
    overridden = tuple(finding.rule_id for finding in prepared.findings if finding.overridden)
    return create_run(
        settings.runs_dir,
        "up",
        url=prepared.plan.url,
        overrides=(*request.overrides, *overridden),
        seeds={"prompts": UP_REGIME.seed},
        **made_from,
    )


def conditions(catalog: Catalog, tier: ResolvedTier, rig: Rig, plan: LaunchPlan) -> dict[str, Any]:
    """Return the manifest fields that say what a managed server was made from."""
    artifact = catalog.artifacts[tier.artifact.value]
    return {
        "slug": tier.slug,
        "engine": plan.engine,
        "engine_version": plan.engine_version,
        "driver_version": rig.driver_version,
        "argv": plan.argv,
        "resolved": {name: FieldRecord(getattr(tier, name).value, getattr(tier, name).origin) for name in TIER_FIELDS},
        "artifacts": {file.path: file.sha256 or "not published" for file in artifact.files},
        "labels": tuple(f"{name}:{value}" for name, value in plan.labels.items()),
        "rig": rig_record(rig),
    }


def _prove(
    catalog: Catalog,
    settings: Settings,
    request: UpRequest,
    folder: Path,
    record: ServerRecord,
    run: Run,
    prepared: Prepared,
) -> Iterator[Event]:
    ready_s = record.ready_s or 0.0
    stages = stage_times(record, read_history(folder))
    held = resident_bytes(record)
    run.append(ServerStarted(server_id=record.server_id, ready_s=ready_s, memory_bytes=held, stages=stages))
    yield Started(server=record, seconds=ready_s)
    target = target_of(record, settings)
    tier = prepared.tier
    model = served_model(catalog, tier)
    facts = server_facts(settings, record, folder, model, drafter=tier.drafter.value, depth=tier.spec_n.value)
    code = ExitCode.DONE
    for event in watched(record, "verify", run, verify(target, facts, run)):
        if isinstance(event, ChecksDone):
            code = verdict_of(event.results)
        yield event
    if request.measure and code is ExitCode.DONE:
        yield from watched(record, "bench", run, bench_quick(target, run, UP_REGIME))
    run.finish("complete", int(code), f"served {record.slug}")
    yield RunSaved(run_id=run.run_id, directory=str(run.directory), exit_code=int(code))
