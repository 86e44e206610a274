"""Serving a tier from end to end: choose, check, fetch, replace what is in the way, start, prove, measure.

Nothing that runs is touched before the new server has passed every check that can be made without starting it.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from redline.artifacts.disk import look_at_tier, tier_artifacts
from redline.artifacts.hub_access import hub_access
from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ensure, locate
from redline.bench.quick import QuickRegime
from redline.catalog.explain import served_model
from redline.catalog.fields import TIER_FIELDS, ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.registry import get_engine
from redline.errors import ExitCode, RedlineError
from redline.guard.finding import Finding, GuardRefusal, Override, Severity, is_experiment
from redline.guard.rules import GuardContext, run_guards
from redline.launch.server import end_orphan, register, resident_bytes, running_servers, start, stop
from redline.launch.state import PLAN_FILE, ServerRecord, ServerState, list_servers, read_record
from redline.ops.bench import bench_quick
from redline.ops.events import (
    AlreadyRunning,
    Began,
    ChecksDone,
    Event,
    FilesReady,
    Planned,
    Replacing,
    RunSaved,
    Started,
)
from redline.ops.servers import BUSY, lock_path, target_of, wait_ready
from redline.ops.stream import deferred_signals, follow_callback
from redline.ops.verify import verdict_of, verify
from redline.plan.dispatch import plan_tier
from redline.plan.types import FitPlan
from redline.record.codec import jsonable
from redline.record.event import payload
from redline.record.files import hold_lock, read_json, write_atomic
from redline.record.manifest import FieldRecord
from redline.record.run import Run, create_run
from redline.rig.detect import detect_rig, find_nvcc
from redline.rig.ports import find_port_holder
from redline.rig.types import Rig
from redline.settings import Settings

CONDITIONS_FILE: Final = "conditions.json"
DEFAULT_SLUG: Final = "llamacpp/smollm2-135m-cpu-fast"
UP_REGIME: Final = QuickRegime(name="up-1", per_class=6, max_tokens=64)


@payload("server.started")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted:
    """A server became ready; seconds from the start of its process, and memory its engine held then."""

    server_id: str
    ready_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    """What the user asked for. `overrides` are the switches that lift refusals, as typed."""

    slug: str | None = None
    overrides: tuple[str, ...] = ()
    beside: bool = False
    measure: bool = True


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A tier that has passed every check, and what stands in its way."""

    tier: ResolvedTier
    rig: Rig
    plan: LaunchPlan
    fit: FitPlan
    findings: tuple[Finding, ...]
    in_the_way: tuple[tuple[Path, ServerRecord], ...]


def up(catalog: Catalog, settings: Settings, request: UpRequest) -> Iterator[Event]:
    """Yield each step of serving a tier; the last event carries the run and its exit code.

    Raises:
        GuardRefusal: nothing was stopped or started.
        EngineStartError: the engine did not become a server; its run is recorded all the same.
        RedlineError: whatever else stood in the way.
    """
    with ExitStack() as lock:
        lock.enter_context(hold_lock(lock_path(settings), BUSY))
        prepared = _prepare(catalog, settings, request)
        yield Began(tier=prepared.tier, rig=prepared.rig)
        same = _same_server(prepared)
        if same is not None:
            yield from _rejoin(*same)
            return
        yield Planned(fit=prepared.fit, findings=prepared.findings)
        if any(finding.severity is Severity.REFUSE for finding in prepared.findings):
            raise GuardRefusal(prepared.findings)
        with _open_run(catalog, settings, request, prepared) as run:
            yield from _fetch(catalog, settings, request, prepared)
            for folder, record in prepared.in_the_way:
                yield Replacing(server=record)
                yield stop(folder, record)
            folder, record = register(settings.servers_dir, prepared.plan)
            keep_conditions(folder, conditions(catalog, prepared.tier, prepared.rig, prepared.plan))
            try:
                with deferred_signals():
                    start(folder, _environment(settings, prepared.plan))
                record = yield from wait_ready(folder)
            except (KeyboardInterrupt, GeneratorExit, SystemExit):
                with suppress(RedlineError):
                    stop(folder, read_record(folder) or record)
                raise
            lock.close()  # the server stands; others may start and stop servers while this one is measured
            yield from _prove(catalog, settings, request, record, run, prepared)


def _prepare(catalog: Catalog, settings: Settings, request: UpRequest) -> _Prepared:
    for _, record in list_servers(settings.servers_dir):
        end_orphan(record)
    tier = resolve(catalog, request.slug or DEFAULT_SLUG, settings.layers)
    running = running_servers(settings.servers_dir)
    in_the_way = tuple(
        (folder, record) for folder, record in running if not request.beside or record.port == tier.port.value
    )
    rig = detect_rig()
    freed = sum(resident_bytes(record) for _, record in in_the_way)
    fit = plan_tier(catalog, tier, replace(rig, memory_available_bytes=rig.memory_available_bytes + freed))
    ours = {record.engine_process.pid for _, record in in_the_way if record.engine_process}
    holder = find_port_holder(tier.bind_host.value, tier.port.value)
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, rig, settings.models_dir)
    context = GuardContext(
        catalog=catalog,
        tier=tier,
        rig=rig,
        fit=fit,
        port_holder=holder.describe() if holder and holder.pid not in ours else None,
        api_key_given=settings.secret("REDLINE_API_KEY") is not None,
        key_file_open=_open_key_file(settings),
        form=plan.form,
        disk=look_at_tier(catalog, tier, settings.models_dir),
        layers=settings.layers,
        nvcc=find_nvcc(os.environ) is not None,
    )
    findings = run_guards(context, request.overrides)
    labels = {"experiment": ",".join(finding.rule_id for finding in findings if is_experiment(finding))}
    if labels["experiment"]:
        plan = replace(plan, labels={**plan.labels, **labels})
    return _Prepared(tier, rig, plan, fit, findings, in_the_way)


def _open_key_file(settings: Settings) -> str | None:
    path = settings.secret_file("REDLINE_API_KEY")
    return str(path) if path is not None and path.stat().st_mode & 0o077 else None


def _same_server(prepared: _Prepared) -> tuple[Path, ServerRecord] | None:
    """Return the running server that was made from this very command line."""
    for folder, record in prepared.in_the_way:
        data = read_json(folder / PLAN_FILE)
        if record.slug == prepared.plan.slug and data and tuple(data.get("argv", ())) == prepared.plan.argv:
            return folder, record
    return None


def _rejoin(folder: Path, record: ServerRecord) -> Iterator[Event]:
    if record.state is not ServerState.READY:
        record = yield from wait_ready(folder)
    yield AlreadyRunning(server=record)


def _fetch(catalog: Catalog, settings: Settings, request: UpRequest, prepared: _Prepared) -> Iterator[Event]:
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


def _open_run(catalog: Catalog, settings: Settings, request: UpRequest, prepared: _Prepared) -> Run:
    overridden = tuple(finding.rule_id for finding in prepared.findings if finding.overridden)
    return create_run(
        settings.runs_dir,
        "up",
        url=prepared.plan.url,
        overrides=(*request.overrides, *overridden),
        seeds={"prompts": UP_REGIME.seed},
        **conditions(catalog, prepared.tier, prepared.rig, prepared.plan),
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
        "rig": rig.fingerprint,
    }


def keep_conditions(folder: Path, found: dict[str, Any]) -> None:
    """Write what a server was made from beside it, so that later runs against it can say so."""
    write_atomic(folder / CONDITIONS_FILE, json.dumps(jsonable(found)) + "\n")


def _environment(settings: Settings, plan: LaunchPlan) -> dict[str, str]:
    names = {name: plan.secret_aliases.get(name, name) for name in plan.secret_env}
    secrets = {name: value for name, source in names.items() if (value := settings.secret(source))}
    return {**os.environ, **secrets}


def _prove(
    catalog: Catalog, settings: Settings, request: UpRequest, record: ServerRecord, run: Run, prepared: _Prepared
) -> Iterator[Event]:
    ready_s = (record.ready_at or time.time()) - record.created_at
    run.append(ServerStarted(server_id=record.server_id, ready_s=ready_s, memory_bytes=resident_bytes(record)))
    yield Started(server=record, seconds=ready_s)
    target = target_of(record, settings)
    model = served_model(catalog, prepared.tier)
    code = ExitCode.DONE
    for event in verify(target, model, run, drafting=prepared.tier.spec_n.value > 0):
        if isinstance(event, ChecksDone):
            code = verdict_of(event.results)
        yield event
    if request.measure and code is ExitCode.DONE:
        yield from bench_quick(target, run, UP_REGIME)
    run.finish("complete", int(code), f"served {record.slug}")
    yield RunSaved(run_id=run.run_id, directory=str(run.directory), exit_code=int(code))
