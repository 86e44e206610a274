"""Several copies of a tier behind one router: check, fetch, start each copy, then the router, prove all of them.

The copies are ordinary servers; the router is vLLM's own, supervised as an engine is. Nothing that runs is touched
before everything that can be checked has been. Ready means: the router counts every copy, and every one is well.
"""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from redline.artifacts.disk import tier_artifacts
from redline.catalog.explain import served_model
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.router import ROUTER_VERSION
from redline.errors import EngineStartError, ExitCode, RedlineError
from redline.guard.finding import GuardRefusal, Severity
from redline.launch.group import Group, write_group
from redline.launch.outcome import ServerStarted, stage_times
from redline.launch.server import start
from redline.launch.state import ServerRecord, read_history, read_record
from redline.launch.stop import Stopped, end_orphan, resident_bytes, stop
from redline.ops.bench import bench_quick
from redline.ops.boot_record import failure_of, watched
from redline.ops.down import stop_with_words
from redline.ops.events import Began, ChecksDone, Event, Planned, RunSaved
from redline.ops.facts import server_facts
from redline.ops.launching import environment, prepare_folder
from redline.ops.prepare import UpRequest
from redline.ops.replica_plan import PreparedGroup, members_at_home, need_router, prepare_group, same_group
from redline.ops.routed import await_members
from redline.ops.server_events import AlreadyRunning, CopyStarted, Outlived, Replacing, ServerEvent, Started
from redline.ops.servers import BUSY, lock_path, target_of, wait_ready
from redline.ops.stream import deferred_signals
from redline.ops.up import UP_REGIME, conditions, fetch_artifact
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
        prepared = prepare_group(catalog, settings, request, replicas)
        yield Began(tier=prepared.tier, rig=prepared.rig)
        same = same_group(settings, prepared)
        if same is not None:
            yield AlreadyRunning(server=same)
            return
        yield Planned(fit=prepared.fit, findings=prepared.findings)
        if any(finding.severity is Severity.REFUSE for finding in prepared.findings):
            raise GuardRefusal(prepared.findings)
        prepared = members_at_home(settings, request, prepared)
        with _open_run(catalog, settings, request, prepared) as run:
            for artifact in tier_artifacts(catalog, prepared.tier):
                yield from fetch_artifact(catalog, settings, artifact.id)
            yield from _clear(prepared)
            servers = yield from _start_all(catalog, settings, prepared, run)
            lock.close()  # the group stands; others may start and stop servers while it is proved
            yield from _prove(catalog, settings, request, prepared, run, servers)


def _open_run(catalog: Catalog, settings: Settings, request: UpRequest, prepared: PreparedGroup) -> Run:
    overridden = tuple(finding.rule_id for finding in prepared.findings if finding.overridden)
    found = conditions(catalog, prepared.tier, prepared.rig, prepared.members[0])
    found["labels"] = (*found["labels"], f"replicas:{len(prepared.members)}", f"router:{ROUTER_VERSION}")
    return create_run(
        settings.runs_dir,
        "up",
        url=prepared.router.url,
        overrides=(*request.overrides, *overridden),
        seeds={"prompts": UP_REGIME.seed},
        **found,
    )


def _clear(prepared: PreparedGroup) -> Iterator[ServerEvent | Stopped]:
    for orphan in prepared.orphans:
        yield Outlived(orphan=orphan)
        yield end_orphan(orphan)
    for folder, record in prepared.in_the_way:
        yield Replacing(server=record)
        yield from stop_with_words(folder, record)


def _start_all(
    catalog: Catalog, settings: Settings, prepared: PreparedGroup, run: Run
) -> Generator[ServerEvent, None, list[tuple[Path, ServerRecord]]]:
    """Start all copies at once, the router when they answer; return them in this order.

    On any failure and on Ctrl-C all that was started is stopped again.
    """
    started: list[Path] = []
    try:
        with deferred_signals():
            for plan in prepared.members:
                _start_one(catalog, settings, prepared, plan, started)
        servers: list[tuple[Path, ServerRecord]] = []
        for folder in tuple(started):
            servers += [(folder, (yield from _ready(folder, run)))]
        members = tuple(record.server_id for _, record in servers)
        with deferred_signals():
            _start_one(catalog, settings, prepared, prepared.router, started)
            write_group(started[-1], Group(router=started[-1].name, members=members))
        servers += [(started[-1], (yield from _ready(started[-1], run)))]
        await_members(servers[-1][1], len(members))
    except BaseException:
        for folder in reversed(started):
            left = read_record(folder)
            with suppress(RedlineError):
                if left is not None and left.running:
                    stop(folder, left, now=True)
        raise
    return servers


def _start_one(
    catalog: Catalog, settings: Settings, prepared: PreparedGroup, plan: LaunchPlan, started: list[Path]
) -> None:
    found = conditions(catalog, prepared.tier, prepared.rig, plan)
    found["labels"] = (*found["labels"], f"replicas:{len(prepared.members)}")
    folder = prepare_folder(settings, plan, found)
    started.append(folder)
    start(folder, environment(settings, plan))


def _ready(folder: Path, run: Run) -> Generator[ServerEvent, None, ServerRecord]:
    try:
        return (yield from wait_ready(folder))
    except EngineStartError:
        failed = read_record(folder)
        if failed is not None:
            run.append(failure_of(folder, failed))
        raise


def _prove(
    catalog: Catalog,
    settings: Settings,
    request: UpRequest,
    prepared: PreparedGroup,
    run: Run,
    servers: list[tuple[Path, ServerRecord]],
) -> Iterator[Event]:
    """Prove each copy by itself, then all of them through the router; measure through the router."""
    *members, (_, router) = servers
    tier, model = prepared.tier, served_model(catalog, prepared.tier)
    # The router has no counters of its own, and `/metrics` there would be those of one copy or another.
    front = replace(target_of(router, settings), engine=None)
    codes: list[ExitCode] = []
    for number, (folder, record) in enumerate(servers, start=1):
        is_router = record is router
        seconds, stages = record.ready_s or 0.0, stage_times(record, read_history(folder))
        held = resident_bytes(record)
        run.append(ServerStarted(server_id=record.server_id, ready_s=seconds, memory_bytes=held, stages=stages))
        copy = CopyStarted(server=record, number=number, total=len(members))
        yield Started(server=record, seconds=seconds) if is_router else copy
        depth = 0 if is_router else tier.spec_n.value
        facts = server_facts(settings, record, folder, model, drafter=tier.drafter.value, depth=depth)
        target = front if is_router else target_of(record, settings)
        for event in watched(record, "verify", run, verify(target, facts, run)):
            if isinstance(event, ChecksDone):
                codes.append(verdict_of(event.results))
            yield event
    worst = next((code for code in codes if code is not ExitCode.DONE), ExitCode.DONE)
    if request.measure and worst is ExitCode.DONE:
        yield from watched(router, "bench", run, bench_quick(front, run, UP_REGIME))
    run.finish("complete", int(worst), f"served {len(members)} copies of {router.slug}")
    yield RunSaved(run_id=run.run_id, directory=str(run.directory), exit_code=int(worst))
