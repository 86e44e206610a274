"""What `up` finds out before it touches anything: the tier, its plan, what guards say, and what stands in its way."""

import os
from dataclasses import dataclass, replace
from typing import Final

from redline.artifacts.disk import look_at_tier
from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.compile_cache import cache_by_gpus
from redline.engine.home import at_home
from redline.engine.launch_plan import LaunchPlan, Readiness
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.errors import UsageError
from redline.guard.finding import Finding, Override, is_experiment
from redline.guard.rules import GuardContext, run_guards
from redline.launch.plan_file import read_plan
from redline.launch.server import running_servers
from redline.launch.stop import Orphan, find_orphans, own_pids
from redline.ops.conflicts import Conflict, Holding, find_conflicts, freed, holdings
from redline.ops.engines import choose_home
from redline.plan.dispatch import plan_tier
from redline.plan.types import FitPlan, Verdict
from redline.rig.detect import detect_rig, find_nvcc
from redline.rig.ports import find_port_holder
from redline.rig.types import Rig
from redline.settings import Settings, parse_int

DEFAULT_SLUG: Final = "llamacpp/smollm2-135m-cpu-fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpRequest:
    """What the user asked for. `overrides` are the switches that lift refusals, as typed.

    `via` is the form, `home` the engine home, where the user chose one; `rollback` brings back what was replaced when
    the new server fails.
    """

    slug: str | None = None
    overrides: tuple[str, ...] = ()
    beside: bool = False
    measure: bool = True
    via: Form | None = None
    home: str | None = None
    rollback: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tier with its plan and what guards say of it, and what stands in its way."""

    tier: ResolvedTier
    rig: Rig
    plan: LaunchPlan
    fit: FitPlan
    findings: tuple[Finding, ...]
    running: tuple[Holding, ...]
    conflicts: tuple[Conflict, ...]
    orphans: tuple[Orphan, ...]


def prepare(catalog: Catalog, settings: Settings, request: UpRequest) -> Prepared:
    """Resolve a tier, plan it, ask every guard, and find what is in its way. Touches nothing.

    Raises:
        UsageError: no such tier, or it has no such form.
    """
    tier = resolve(catalog, request.slug or DEFAULT_SLUG, settings.layers)
    rig = detect_rig()
    running = running_servers(settings.servers_dir)
    held = holdings(running)
    orphans = tuple(
        orphan
        for orphan in find_orphans(settings.servers_dir)
        if not request.beside or orphan.record.port == tier.port.value
    )
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, rig, settings.models_dir, request.via)
    plan = replace(plan, gpus=_gpus(catalog, tier, rig), readiness=_readiness(plan.readiness, settings))

    def fits(ended: tuple[Holding, ...]) -> bool:
        return plan_tier(catalog, tier, freed(rig, ended)).verdict is not Verdict.NO

    conflicts = find_conflicts(plan, held, beside=request.beside, fits=fits)
    ended = tuple(conflict.holding for conflict in conflicts)
    fit = plan_tier(catalog, tier, freed(rig, ended))
    context = GuardContext(
        catalog=catalog,
        tier=tier,
        rig=rig,
        fit=fit,
        port_holder=_port_holder(plan, conflicts, orphans),
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
    return Prepared(tier, rig, plan, fit, findings, held, conflicts, orphans)


def _readiness(usual: Readiness, settings: Settings) -> Readiness:
    """Return the engine's own limits, or those of the user."""
    limit = settings.layers.get("READY_TIMEOUT")
    if limit is None:
        return usual
    seconds = parse_int(limit, "READY_TIMEOUT", minimum=1, maximum=86_400).value
    return replace(usual, timeout_s=seconds, silence_s=max(usual.silence_s, seconds))


def _gpus(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> tuple[int, ...]:
    """Return the indices of the GPUs that a tier takes: those it names, else the first that suffice."""
    named = [word.strip() for word in (tier.gpu_ids.value or "").split(",") if word.strip()]
    by_uuid = {gpu.uuid: gpu.index for gpu in rig.gpus}
    if named:
        return tuple(int(word) if word.isdigit() else by_uuid.get(word, 0) for word in named)
    return tuple(range(tier.gpus or catalog.topologies[tier.key.topology].gpus))


def _port_holder(plan: LaunchPlan, conflicts: tuple[Conflict, ...], orphans: tuple[Orphan, ...]) -> str | None:
    """Return who holds the port besides the servers that will end before the plan starts."""
    holder = find_port_holder(plan.host, plan.port)
    if holder is None:
        return None
    ending = [(item.holding.folder, item.holding.record) for item in conflicts]
    ending += [(orphan.folder, orphan.record) for orphan in orphans]
    # A container's port is held by docker's own proxy, which is no process of ours.
    by_docker = any(record.form == "docker" and record.port == plan.port for _, record in ending)
    return None if by_docker or holder.pid in own_pids(ending) else holder.describe()


def plan_at_home(settings: Settings, request: UpRequest, prepared: Prepared) -> LaunchPlan:
    """Return the plan as it will be started: a native one from the engine home that fits it.

    Raises:
        NoEngineHomeError: there is none; nothing was stopped.
        UsageError: a home was named for a form that has none.
    """
    plan = prepared.plan
    if plan.form == "native":
        home = choose_home(settings, plan.engine, plan.engine_version, request.home)
        return cache_by_gpus(at_home(plan, home, os.environ), os.environ)
    if request.home is not None:
        raise UsageError(f"--engine-home is for --via native; {plan.slug} is started as {plan.form} here.")
    return plan


def _open_key_file(settings: Settings) -> str | None:
    path = settings.secret_file("REDLINE_API_KEY")
    return str(path) if path is not None and path.stat().st_mode & 0o077 else None


def same_server(prepared: Prepared) -> Holding | None:
    """Return the running server that was made from this very command line."""
    for holding in prepared.running:
        plan = read_plan(holding.folder)
        if plan is None or (plan.slug, plan.form, plan.port) != (
            prepared.plan.slug,
            prepared.plan.form,
            prepared.plan.port,
        ):
            continue
        words = len(prepared.plan.argv) - 1  # the program itself may have been replaced by a home's command
        if plan.argv[-words:] == prepared.plan.argv[1:]:
            return holding
    return None


def memory_after_stops(catalog: Catalog, request: UpRequest, prepared: Prepared) -> str | None:
    """Return why a tier does not fit now that others have ended, though it was planned to; None when it does."""
    if Override.IGNORE_VRAM in request.overrides or prepared.fit.verdict is Verdict.NO:
        return None
    now = plan_tier(catalog, prepared.tier, detect_rig())
    if now.verdict is not Verdict.NO:
        return None
    return f"{prepared.tier.slug} does not fit although what was in its way has ended: {'; '.join(now.reasons)}."
