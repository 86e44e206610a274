"""What several copies and their router would be: ports, a share of the machine each, and what guards say of it.

Knows plans; starts and stops nothing.
"""

import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from redline.artifacts.disk import look_at_tier
from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.registry import get_engine
from redline.engine.router import ROUTER, ROUTER_MODULE, ROUTER_VERSION, router_plan
from redline.errors import MissingError, UsageError
from redline.guard.finding import Finding
from redline.guard.rules import GuardContext, run_guards
from redline.guard.topology import judge_router
from redline.launch.group import Server, read_groups, together
from redline.launch.render.replicas import gpu_sets, replica_plans
from redline.launch.render.words import drop_flags
from redline.launch.server import resident_bytes, running_servers
from redline.launch.state import PLAN_FILE, ServerRecord
from redline.ops.up import DEFAULT_SLUG, UpRequest
from redline.plan.dispatch import plan_tier
from redline.plan.types import FitPlan
from redline.record.files import read_json
from redline.rig.detect import detect_rig
from redline.rig.ports import can_bind, find_port_holder
from redline.rig.types import Rig
from redline.settings import Settings

_HEALTH_INTERVAL_S: Final = 2


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """Copies and router that have passed every check, and what stands in their way. `fit` is of one copy."""

    tier: ResolvedTier
    rig: Rig
    fit: FitPlan
    members: tuple[LaunchPlan, ...]
    router: LaunchPlan
    findings: tuple[Finding, ...]
    in_the_way: tuple[Server, ...]


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


def prepare(catalog: Catalog, settings: Settings, request: UpRequest, replicas: int) -> PreparedGroup:
    """Return the plans of copies and router, each copy with its share of processors and memory.

    Raises:
        UsageError: a tier whose copies are rendered and not started, or there are not enough ports.
    """
    tier = resolve(catalog, request.slug or DEFAULT_SLUG, settings.layers)
    if tier.key.topology != "cpu":
        raise UsageError(
            f"Copies of {tier.slug} are not started by this version: nobody has run them.",
            next_step=f"`redline render {tier.slug} --as replicas --replicas {replicas}` writes their commands.",
        )
    groups, running = read_groups(settings.servers_dir), running_servers(settings.servers_dir)
    port = tier.port.value
    chosen = [record.server_id for _, record in running if not request.beside or record.port == port]
    in_the_way = tuple(together(running, groups, chosen))
    rig = detect_rig()
    freed = sum(resident_bytes(record) for _, record in in_the_way)
    share = replace(
        rig,
        cpus=max(1, rig.cpus // replicas),
        memory_available_bytes=(rig.memory_available_bytes + freed) // replicas,
    )
    fit = plan_tier(catalog, tier, share)
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, share, settings.models_dir)
    ports = _free_ports(port, replicas + 1, {record.port for _, record in in_the_way})
    members = replica_plans(plan, ports[:-1], gpu_sets(replicas, 0))
    router = router_plan(
        members,
        host=tier.bind_host.value,
        port=port,
        metrics_port=ports[-1],
        program=(sys.executable, "-P", "-m", "vllm_router.launch_router"),
        health_interval_s=_HEALTH_INTERVAL_S,
        startup_timeout_s=120,
    )
    findings = _findings(catalog, settings, request, tier, share, fit, in_the_way)
    return PreparedGroup(tier, rig, fit, members, router, findings, in_the_way)


def _findings(
    catalog: Catalog,
    settings: Settings,
    request: UpRequest,
    tier: ResolvedTier,
    share: Rig,
    fit: FitPlan,
    in_the_way: tuple[Server, ...],
) -> tuple[Finding, ...]:
    host, port = tier.bind_host.value, tier.port.value
    ours = {record.engine_process.pid for _, record in in_the_way if record.engine_process}
    holder = find_port_holder(host, port)
    context = GuardContext(
        catalog=catalog,
        tier=tier,
        rig=share,
        fit=fit,
        port_holder=holder.describe() if holder and holder.pid not in ours else None,
        api_key_given=settings.secret("REDLINE_API_KEY") is not None,
        disk=look_at_tier(catalog, tier, settings.models_dir),
        layers=settings.layers,
    )
    return (*judge_router(host), *run_guards(context, request.overrides))


def _free_ports(after: int, count: int, freed: set[int]) -> list[int]:
    """Return the next ports that can be bound once what is in the way is gone.

    Raises:
        UsageError: the ports end before enough are found.
    """
    found: list[int] = []
    for port in range(after + 1, 65536):
        if port in freed or can_bind("127.0.0.1", port):
            found.append(port)
        if len(found) == count:
            return found
    raise UsageError(f"There are not {count} free ports above {after}.", next_step="Give a lower --port.")


def same_group(settings: Settings, prepared: PreparedGroup) -> ServerRecord | None:
    """Return the router of a running group that was made from these very settings, whatever ports its copies have."""
    running = {record.server_id: (folder, record) for folder, record in prepared.in_the_way}
    for group in read_groups(settings.servers_dir):
        if not group.ids <= set(running) or len(group.members) != len(prepared.members):
            continue
        _, record = running[group.router]
        made = [_argv(running[name][0]) for name in group.members]
        wanted = [plan.argv for plan in prepared.members]
        if record.port == prepared.router.port and [_portless(w) for w in made] == [_portless(w) for w in wanted]:
            return record
    return None


def _argv(folder: Path) -> tuple[str, ...]:
    data = read_json(folder / PLAN_FILE)
    return tuple(data.get("argv", ())) if isinstance(data, dict) else ()


def _portless(argv: tuple[str, ...]) -> tuple[str, ...]:
    return drop_flags(argv, ("--port",))
