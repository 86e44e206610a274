"""Which running servers stand in the way of a new one, and of what: its port, its GPUs, the processors, memory.

Only those are replaced. What is freed by their end is counted as free when the new one is planned.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from redline.engine.launch_plan import LaunchPlan
from redline.launch.family import Family, family_of
from redline.launch.plan_file import read_plan
from redline.launch.state import ServerRecord
from redline.rig.gpu_memory import GpuHold, gpu_holds
from redline.rig.processes import ProcessTable, read_processes
from redline.rig.types import Rig


@dataclass(frozen=True, slots=True)
class Holding:
    """What one server holds: its port, its GPUs (None: unknown, perhaps all), host memory, GPU memory."""

    folder: Path
    record: ServerRecord
    gpus: frozenset[int] | None
    family: Family
    on_gpu: tuple[GpuHold, ...]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A server in the way, and why."""

    holding: Holding
    why: str


def holdings(servers: Iterable[tuple[Path, ServerRecord]], table: ProcessTable | None = None) -> tuple[Holding, ...]:
    """Return what servers hold now."""
    rows = table if table is not None else read_processes()
    found = []
    for folder, record in servers:
        family = family_of(folder, record, rows)
        found.append(Holding(folder, record, _gpus(folder), family, gpu_holds(family.pids)))
    return tuple(found)


def _gpus(folder: Path) -> frozenset[int] | None:
    plan = read_plan(folder)
    if plan is not None and plan.form == "embedded":
        return frozenset()
    return None if plan is None or plan.gpus is None else frozenset(plan.gpus)


def find_conflicts(
    plan: LaunchPlan, running: Iterable[Holding], *, beside: bool, fits: Callable[[tuple[Holding, ...]], bool]
) -> tuple[Conflict, ...]:
    """Return the servers that must end for a plan to start.

    `fits` says whether the plan would fit into memory once the given servers have ended. With `beside` only the holder
    of the very same port is in the way.
    """
    chosen: list[Conflict] = []
    rest: list[Holding] = []
    for holding in running:
        why = _why(plan, holding, beside=beside)
        if why:
            chosen.append(Conflict(holding, why))
        else:
            rest.append(holding)
    ended = tuple(conflict.holding for conflict in chosen)
    if beside or fits(ended):
        return tuple(chosen)
    # The youngest first, and no more than it takes; when even all of them do not suffice, none of them is to blame.
    extra: list[Conflict] = []
    for holding in sorted(rest, key=lambda item: -item.record.sequence):
        extra.append(Conflict(holding, "its memory is needed"))
        if fits((*ended, *(conflict.holding for conflict in extra))):
            return (*chosen, *extra)
    return tuple(chosen)


def _why(plan: LaunchPlan, holding: Holding, *, beside: bool) -> str:
    record = holding.record
    if record.port == plan.port:
        return f"it holds port {plan.port}"
    if beside:
        return ""
    wanted = frozenset(plan.gpus or ())
    if holding.gpus is None:
        return "it may hold any GPU" if wanted else ""
    shared = sorted(wanted & holding.gpus)
    if shared:
        return f"it holds GPU {' and '.join(map(str, shared))}"
    if not wanted and not holding.gpus:
        return "it computes on the same processors"
    return ""


def freed(rig: Rig, ended: Iterable[Holding]) -> Rig:
    """Return the rig as it will be once servers have ended."""
    gone = tuple(ended)
    host = sum(holding.family.resident_bytes for holding in gone)
    back: dict[str, int] = {}
    for hold in (hold for holding in gone for hold in holding.on_gpu):
        back[hold.gpu_uuid] = back.get(hold.gpu_uuid, 0) + hold.used_bytes
    gpus = tuple(
        replace(gpu, memory_free_bytes=min(gpu.memory_total_bytes, gpu.memory_free_bytes + back.get(gpu.uuid, 0)))
        for gpu in rig.gpus
    )
    available = min(rig.memory_total_bytes, rig.memory_available_bytes + host)
    return replace(rig, memory_available_bytes=available, gpus=gpus)
