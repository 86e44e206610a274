"""What several copies and their router would be: ports, a share of the machine each, and what guards say of it.

Knows plans; starts and stops nothing.
"""

import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from redline.artifacts.disk import look_at_tier
from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.compile_cache import cache_by_gpus
from redline.engine.home import at_home
from redline.engine.launch_plan import LaunchPlan
from redline.engine.registry import get_engine
from redline.engine.router import ROUTER, ROUTER_MODULE, ROUTER_VERSION, router_plan
from redline.errors import MissingError, UsageError
from redline.guard.finding import Finding, Severity
from redline.guard.rules import GuardContext, run_guards
from redline.guard.topology import judge_router
from redline.launch.group import Server, read_groups, together
from redline.launch.plan_file import read_plan
from redline.launch.render.replicas import gpu_sets, replica_plans
from redline.launch.render.words import drop_flags
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord
from redline.launch.stop import Orphan, find_orphans, own_pids
from redline.ops.conflicts import Holding, find_conflicts, freed, holdings
from redline.ops.engines import choose_home
from redline.ops.prepare import DEFAULT_SLUG, UpRequest
from redline.plan.dispatch import plan_tier
from redline.plan.types import FitPlan, Verdict
from redline.rig.detect import detect_rig
from redline.rig.ports import can_bind, find_port_holder
from redline.rig.types import Rig
from redline.settings import Settings

_HEALTH_INTERVAL_S: Final = 2
_FOR_ONE: Final = "--rollback, --engine-home and --via"


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """Copies and router with what guards say of them, and what stands in their way. `fit` is of one copy.

    Copies on GPUs name theirs; their command is the engine's own until `members_at_home` has it from a home.
    """

    tier: ResolvedTier
    rig: Rig
    fit: FitPlan
    members: tuple[LaunchPlan, ...]
    router: LaunchPlan
    findings: tuple[Finding, ...]
    running: tuple[Server, ...]
    in_the_way: tuple[Server, ...]
    orphans: tuple[Orphan, ...]


def need_router() -> None:
    """Check that the router is installed.

    Raises:
        MissingError: it is not; says how to install it.
    """
    if importlib.util.find_spec(ROUTER_MODULE) is None:
        raise MissingError(
            f"Several copies stand behind {ROUTER}, which is not installed.",
            next_step=f"{sys.executable} -m pip install {ROUTER}=={ROUTER_VERSION}",
        )


def prepare_group(catalog: Catalog, settings: Settings, request: UpRequest, replicas: int) -> PreparedGroup:
    """Return the plans of copies and router. Touches nothing.

    Each copy has its share of processors and memory; on GPUs each has its own, whole.

    Raises:
        UsageError: a tier whose copies are rendered and not started, a switch that is for one server, GPUs named that
            do not suffice, or no ports.
    """
    tier = resolve(catalog, request.slug or DEFAULT_SLUG, settings.layers)
    _startable(tier, request, replicas)
    rig, running = detect_rig(), running_servers(settings.servers_dir)
    per_copy = tier.gpus or catalog.topologies[tier.key.topology].gpus
    sets = _gpu_sets(tier, replicas, per_copy)
    orphans = tuple(
        orphan
        for orphan in find_orphans(settings.servers_dir)
        if not request.beside or orphan.record.port == tier.port.value
    )
    whole = get_engine(tier.key.engine).launch_plan(catalog, tier, rig, settings.models_dir)

    def worst(share: Rig) -> FitPlan:
        fits = [plan_tier(catalog, _on(tier, gpus), share) for gpus in dict.fromkeys(sets)]
        return next((fit for fit in fits if fit.verdict is Verdict.NO), fits[0])

    def fits(ended: tuple[Holding, ...]) -> bool:
        return worst(_share(freed(rig, ended), replicas)).verdict is not Verdict.NO

    # The tier's own port is the router's; for what stands in the way the group counts as one server there.
    whole = replace(whole, gpus=tuple(index for gpus in sets for index in _indices(gpus)))
    conflicts = find_conflicts(whole, holdings(running), beside=request.beside, fits=fits)
    chosen = [conflict.holding.record.server_id for conflict in conflicts]
    in_the_way = tuple(together(running, read_groups(settings.servers_dir), chosen))
    share = _share(freed(rig, holdings(in_the_way)), replicas)
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, share, settings.models_dir)
    ports = _free_ports(tier.port.value, replicas + 1, {record.port for _, record in in_the_way})
    members = tuple(
        replace(member, gpus=_indices(gpus)) if gpus else member
        for member, gpus in zip(replica_plans(plan, ports[:-1], sets), sets, strict=True)
    )
    router = router_plan(
        members,
        host=tier.bind_host.value,
        port=tier.port.value,
        metrics_port=ports[-1],
        program=(sys.executable, "-P", "-m", "vllm_router.launch_router"),
        health_interval_s=_HEALTH_INTERVAL_S,
        startup_timeout_s=120,
    )
    fit = worst(share)
    ending = [*in_the_way, *((orphan.folder, orphan.record) for orphan in orphans)]
    context = GuardContext(
        catalog=catalog,
        tier=_on(tier, ",".join(filter(None, sets)) or None),
        rig=share,
        fit=fit,
        port_holder=_port_holder(router, ending),
        api_key_given=settings.secret("REDLINE_API_KEY") is not None,
        disk=look_at_tier(catalog, tier, settings.models_dir),
        layers=settings.layers,
    )
    findings = (
        *judge_router(tier.bind_host.value),
        *_too_few(whole, rig, replicas, per_copy),
        *run_guards(context, request.overrides),
    )
    return PreparedGroup(tier, rig, fit, members, router, findings, tuple(running), in_the_way, orphans)


def members_at_home(settings: Settings, request: UpRequest, prepared: PreparedGroup) -> PreparedGroup:
    """Return the group as it will be started: native copies from the engine home that fits them.

    Each has a folder of compiled code for its own GPUs.

    Raises:
        NoEngineHomeError: there is none; nothing was stopped.
    """
    first = prepared.members[0]
    if first.form != "native":
        return prepared
    home = choose_home(settings, first.engine, first.engine_version, request.home)
    members = tuple(cache_by_gpus(at_home(member, home, os.environ), os.environ) for member in prepared.members)
    return replace(prepared, members=members)


def _startable(tier: ResolvedTier, request: UpRequest, replicas: int) -> None:
    on_gpus = tier.key.topology != "cpu"
    if on_gpus and tier.key.engine != "vllm":
        raise UsageError(
            f"Copies of {tier.slug} are not started by this version: nobody has run them.",
            next_step=f"`redline render {tier.slug} --as replicas --replicas {replicas}` writes their commands.",
        )
    form, switches = ("native", "--rollback and --via docker") if on_gpus else ("embedded", _FOR_ONE)
    if request.rollback or request.via not in (None, form) or (request.home and not on_gpus):
        raise UsageError(f"{switches} are for one server, not for --replicas.")


def _gpu_sets(tier: ResolvedTier, replicas: int, per_copy: int) -> tuple[str | None, ...]:
    """Return the GPUs of each copy: of those that GPUS names, in its order, else the first ones.

    Raises:
        UsageError: GPUS names another number than the copies take.
    """
    named = [word.strip() for word in (tier.gpu_ids.value or "").split(",") if word.strip()]
    if not named or not per_copy:
        return gpu_sets(replicas, per_copy)
    if len(named) != replicas * per_copy or not all(word.isdecimal() for word in named):
        raise UsageError(
            f"{replicas} copies of {tier.slug} take {replicas * per_copy} GPUs by number, "
            f"and GPUS names {', '.join(named)}.",
            next_step=f"--gpus {','.join(str(index) for index in range(replicas * per_copy))}, or leave it out.",
        )
    return tuple(",".join(named[at : at + per_copy]) for at in range(0, len(named), per_copy))


def _indices(gpus: str | None) -> tuple[int, ...]:
    return tuple(int(word) for word in gpus.split(",")) if gpus else ()


def _on(tier: ResolvedTier, gpus: str | None) -> ResolvedTier:
    """Return a tier as it is on these GPUs; without any, as it is."""
    return replace(tier, gpu_ids=replace(tier.gpu_ids, value=gpus)) if gpus else tier


def _too_few(whole: LaunchPlan, rig: Rig, replicas: int, per_copy: int) -> tuple[Finding, ...]:
    need, have = replicas * per_copy, [index for index in whole.gpus or () if index < len(rig.gpus)]
    if len(have) == need:
        return ()
    return (
        Finding(
            rule_id="gpu-count",
            severity=Severity.REFUSE,
            message=f"{replicas} copies of {whole.slug} need {need} GPU{'s' if need > 1 else ''} and this machine "
            f"shows {len(rig.gpus)}.",
            remedy="Start fewer copies, or run this on a machine with more GPUs.",
            source="nvidia-smi",
        ),
    )


def _share(rig: Rig, replicas: int) -> Rig:
    """Return the part of a rig that one of several copies may count on."""
    available = rig.memory_available_bytes // replicas
    return replace(rig, cpus=max(1, rig.cpus // replicas), memory_available_bytes=available)


def _port_holder(router: LaunchPlan, ending: Iterable[Server]) -> str | None:
    holder = find_port_holder(router.host, router.port)
    return None if holder is None or holder.pid in own_pids(list(ending)) else holder.describe()


def _free_ports(after: int, count: int, freed_ports: set[int]) -> list[int]:
    found: list[int] = []
    for port in range(after + 1, 65536):
        if port in freed_ports or can_bind("127.0.0.1", port):
            found.append(port)
        if len(found) == count:
            return found
    raise UsageError(f"There are not {count} free ports above {after}.", next_step="Give a lower --port.")


def same_group(settings: Settings, prepared: PreparedGroup) -> ServerRecord | None:
    """Return the router of a running group that was made from these very settings, whatever ports its copies have."""
    running = {record.server_id: (folder, record) for folder, record in prepared.running}
    wanted = [_portless(plan) for plan in prepared.members]
    for group in read_groups(settings.servers_dir):
        if not group.ids <= set(running):
            continue
        _, record = running[group.router]
        made = [_portless(read_plan(running[name][0])) for name in group.members]
        alike = len(made) == len(wanted) and all(map(_same_words, made, wanted))
        if record.port == prepared.router.port and alike:
            return record
    return None


def _same_words(made: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether a command is the wanted one, whatever program a home's command put in the place of its first word."""
    return made[-(len(wanted) - 1) :] == wanted[1:]


def _portless(plan: LaunchPlan | None) -> tuple[str, ...]:
    return drop_flags(plan.argv, ("--port",)) if plan else ()
