"""Several copies of a tier behind one router: check, fetch, start each copy, then the router, prove all of them.

The copies are ordinary servers; the router is vLLM's own, supervised as an engine is. Nothing that runs is touched
before everything that can be checked has been. Ready means: the router counts every copy, and every one is well.
"""

import os
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from redline.artifacts.disk import tier_artifacts
from redline.catalog.explain import served_model
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.router import ROUTER_VERSION
from redline.errors import ExitCode, RedlineError
from redline.guard.finding import GuardRefusal, Severity
from redline.launch.group import Group, write_group
from redline.launch.server import register, resident_bytes, start, stop
from redline.launch.state import ServerRecord, read_record
from redline.ops.bench import bench_quick
from redline.ops.events import (
    AlreadyRunning,
    Began,
    ChecksDone,
    CopyStarted,
    Event,
    Planned,
    Replacing,
    RunSaved,
    Started,
)
from redline.ops.replica_plan import PreparedGroup, need_router, prepare, same_group
from redline.ops.routed import await_members
from redline.ops.servers import BUSY, lock_path, target_of, wait_ready
from redline.ops.stream import deferred_signals
from redline.ops.up import (
    UP_REGIME,
    ServerStarted,
    UpRequest,
    conditions,
    fetch_artifact,
    keep_conditions,
)
from redline.ops.verify import verdict_of, verify
from redline.record.files import hold_lock
from redline.record.run import Run, create_run
from redline.settings import Settings


def up_replicas(catalog: Catalog, settings: Settings, request: UpRequest, replicas: int) -> Iterator[Event]:
    """Yield each step of serving several copies; the last event carries the run and its exit code.

    Raises:
        GuardRefusal: nothing was stopped or started.
        MissingError: the router is not installed.
        UsageError: a tier whose copies are rendered and not started.
        EngineStartError: a copy or the router did not become a server; what was started was stopped again.
    """
    need_router()
    with ExitStack() as lock:
        lock.enter_context(hold_lock(lock_path(settings), BUSY))
        prepared = prepare(catalog, settings, request, replicas)
        yield Began(tier=prepared.tier, rig=prepared.rig)
        same = same_group(settings, prepared)
        if same is not None:
            yield AlreadyRunning(server=same)
            return
        yield Planned(fit=prepared.fit, findings=prepared.findings)
        if any(finding.severity is Severity.REFUSE for finding in prepared.findings):
            raise GuardRefusal(prepared.findings)
        with _open_run(catalog, settings, request, prepared) as run:
            for artifact in tier_artifacts(catalog, prepared.tier):
                yield from fetch_artifact(catalog, settings, artifact.id)
            for folder, record in prepared.in_the_way:
                yield Replacing(server=record)
                yield stop(folder, record)
            members, router = yield from _start_all(catalog, settings, prepared)
            lock.close()  # the group stands; others may start and stop servers while it is proved
            yield from _prove(catalog, settings, request, prepared, run, members, router)


def _open_run(catalog: Catalog, settings: Settings, request: UpRequest, prepared: PreparedGroup) -> Run:
    overridden = tuple(finding.rule_id for finding in prepared.findings if finding.overridden)
    found = conditions(catalog, prepared.tier, prepared.rig, prepared.members[0])
    found["labels"] = (*found.get("labels", ()), f"replicas:{len(prepared.members)}", f"router:{ROUTER_VERSION}")
    return create_run(
        settings.runs_dir,
        "up",
        url=prepared.router.url,
        overrides=(*request.overrides, *overridden),
        seeds={"prompts": UP_REGIME.seed},
        **found,
    )


def _start_all(
    catalog: Catalog, settings: Settings, prepared: PreparedGroup
) -> Generator[Event, None, tuple[list[ServerRecord], ServerRecord]]:
    """Start all copies at once, the router when they answer; on any failure stop what was started."""
    started: list[Path] = []
    environ = _environment(settings, prepared.members[0])
    try:
        with deferred_signals():
            for plan in prepared.members:
                started.append(_start_one(catalog, settings, prepared, plan, environ))  # noqa: PERF401 -- what was started must be known when the next one fails
        members: list[ServerRecord] = []
        for folder in started:
            record = yield from wait_ready(folder)
            members += [record]
        with deferred_signals():
            folder = _start_one(catalog, settings, prepared, prepared.router, environ)
            started.append(folder)
            write_group(folder, Group(router=folder.name, members=tuple(record.server_id for record in members)))
        router = yield from wait_ready(folder)
        await_members(router, len(members))
    except BaseException:
        for path in reversed(started):
            left = read_record(path)
            with suppress(RedlineError):
                if left is not None and left.running:
                    stop(path, left)
        raise
    return members, router


def _start_one(
    catalog: Catalog, settings: Settings, prepared: PreparedGroup, plan: LaunchPlan, environ: dict[str, str]
) -> Path:
    folder, _ = register(settings.servers_dir, plan)
    found = conditions(catalog, prepared.tier, prepared.rig, plan)
    found["labels"] = (*found.get("labels", ()), f"replicas:{len(prepared.members)}")
    keep_conditions(folder, found)
    start(folder, environ)
    return folder


def _environment(settings: Settings, plan: LaunchPlan) -> dict[str, str]:
    names = {name: plan.secret_aliases.get(name, name) for name in plan.secret_env}
    return {**os.environ, **{name: value for name, source in names.items() if (value := settings.secret(source))}}


def _prove(
    catalog: Catalog,
    settings: Settings,
    request: UpRequest,
    prepared: PreparedGroup,
    run: Run,
    members: list[ServerRecord],
    router: ServerRecord,
) -> Iterator[Event]:
    """Prove each copy by itself, then all of them through the router; measure through the router."""
    model, drafting = served_model(catalog, prepared.tier), prepared.tier.spec_n.value > 0
    codes: list[ExitCode] = []
    for number, record in enumerate((*members, router), start=1):
        ready_s = (record.ready_at or time.time()) - record.created_at
        run.append(ServerStarted(server_id=record.server_id, ready_s=ready_s, memory_bytes=resident_bytes(record)))
        copy = CopyStarted(server=record, number=number, total=len(members))
        yield Started(server=router, seconds=ready_s) if record is router else copy
        target = replace(target_of(record, settings), engine=None if record is router else record.engine)
        for event in verify(target, model, run, drafting=drafting and record is not router):
            if isinstance(event, ChecksDone):
                codes.append(verdict_of(event.results))
            yield event
    worst = next((code for code in codes if code is not ExitCode.DONE), ExitCode.DONE)
    if request.measure and worst is ExitCode.DONE:
        yield from bench_quick(replace(target_of(router, settings), engine=None), run, UP_REGIME)
    run.finish("complete", int(worst), f"served {len(members)} copies of {router.slug}")
    yield RunSaved(run_id=run.run_id, directory=str(run.directory), exit_code=int(worst))
