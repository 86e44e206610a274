"""A tier laid out over copies and machines, as text: choose the cut, judge it by what vLLM refuses, render it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.engine.router import Policy
from redline.errors import UsageError
from redline.guard.finding import Finding, GuardRefusal, Severity
from redline.guard.topology import judge_command, judge_router, judge_spread
from redline.launch.render.lws import render_lws
from redline.launch.render.multinode import node_plans, render_multinode
from redline.launch.render.replicas import render_replicas
from redline.launch.render.sbatch import render_sbatch
from redline.launch.render.systemd import render_systemd
from redline.ops.render import Rendering, tier_findings
from redline.plan.spread import Cut, Spread, choose_cut, make_spread
from redline.rig.types import Rig
from redline.settings import Layers, Sourced

CLUSTER_KINDS: Final = ("systemd", "sbatch", "lws", "replicas", "multinode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the user asked for. `cut` None leaves the choice to redline; `container` asks for the docker form."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    addresses: tuple[str, ...] = ()
    interface: str | None = None
    cut: Cut | None = None
    network_fast: bool = False
    replicas: int | None = None
    policy: Policy = Policy.CONSISTENT_HASH
    container: bool = False

    def machines(self, kind: str) -> int:
        """Return how many machines one copy spans: as asked, else as many as were named, else the kind's usual."""
        return self.nodes or len(self.addresses) or (2 if kind == "multinode" else 1)


def render_cluster(
    catalog: Catalog, slug: str, layers: Layers, rig: Rig, models_dir: Path, kind: str, layout: Layout
) -> Rendering:
    """Return a tier in one of `CLUSTER_KINDS`.

    Raises:
        UsageError: the tier has no such form, or the layout contradicts itself.
        GuardRefusal: the engine would refuse that layout.
    """
    tier, spread, layers = lay_out(catalog, slug, layers, layout, kind)
    form: Form | None = "docker" if kind == "lws" or layout.container else None
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, rig, models_dir, form)
    judged = _judge(catalog, tier, spread, plan)
    if any(finding.severity is Severity.REFUSE for finding in judged):
        raise GuardRefusal(judged)
    # A text is not a running router: what `up` refuses, a rendering says.
    open_router = judge_router(plan.host) if kind == "replicas" else ()
    said = tuple(replace(finding, severity=Severity.WARN) for finding in open_router)
    findings = _once((*judged, *said, *tier_findings(catalog, tier, rig, layers)))
    return Rendering(
        slug=tier.slug,
        kind=kind,
        form=plan.form,
        engine=plan.engine,
        engine_version=plan.engine_version,
        argv=plan.argv,
        env=dict(plan.env),
        url=plan.url,
        text=_text(kind, plan, tier, spread, layout),
        findings=findings,
        notes=tuple(_notes(kind, spread)),
    )


def lay_out(
    catalog: Catalog, slug: str, layers: Layers, layout: Layout, kind: str
) -> tuple[ResolvedTier, Spread, Layers]:
    """Return the tier with the sizes that the spread gives it, the spread, and the settings that say so.

    Raises:
        UsageError: see `make_spread`.
    """
    tier = resolve(catalog, slug, layers)
    nodes = layout.machines(kind)
    drafting = tier.spec_n.value > 0 and catalog.drafters[tier.drafter.value].kind.value != "lookup"
    spread = make_spread(
        nodes=nodes,
        world=tier.gpus,
        gpus_per_node=layout.gpus_per_node if nodes > 1 or layout.gpus_per_node else max(tier.gpus, 1),
        cut=layout.cut or choose_cut(drafting=drafting, network_fast=layout.network_fast),
        addresses=layout.addresses,
        interface=layout.interface,
        network_fast=layout.network_fast,
    )
    if tier.gpus == 0 or (nodes == 1 and layout.gpus_per_node is None):
        return tier, spread, layers
    sizes = {"TP": spread.tensor_parallel, "PP": spread.pipeline_parallel}
    given = {name: Sourced(str(size), "cli:--nodes") for name, size in sizes.items()}
    layers = replace(layers, cli={**layers.cli, **given})
    return resolve(catalog, slug, layers), spread, layers


def _judge(catalog: Catalog, tier: ResolvedTier, spread: Spread, plan: LaunchPlan) -> tuple[Finding, ...]:
    """Return what the engine refuses of the commands, and what is a poor choice of machines."""
    if plan.engine != "vllm":
        return ()
    model = catalog.models[tier.key.model]
    # A scheduler names the machines; for judging, any addresses do.
    named = spread if spread.addresses else replace(spread, addresses=_stand_ins(spread.nodes))
    commands = [node.argv for node in node_plans(plan, named)] if spread.nodes > 1 else [plan.argv]
    own = catalog.topologies[tier.key.topology].gpus
    found = [finding for argv in commands for finding in judge_command(argv, model)]
    return _once((*found, *judge_spread(spread, model, gpus_of_tier=own)))


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding of each rule."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.rule_id, finding)
    return tuple(first.values())


def _stand_ins(nodes: int) -> tuple[str, ...]:
    return tuple(f"192.0.2.{10 + number}" for number in range(nodes))  # RFC 5737: addresses of examples


def _text(kind: str, plan: LaunchPlan, tier: ResolvedTier, spread: Spread, layout: Layout) -> str:
    if kind == "systemd":
        return render_systemd(plan)
    if kind == "sbatch":
        return render_sbatch(plan, spread)
    if kind == "lws":
        return render_lws(plan, spread, layout.replicas or 1)
    if kind == "multinode":
        return render_multinode(plan, spread)
    if spread.nodes > 1:
        raise UsageError(
            "Copies that each span machines are not rendered as plain commands.",
            next_step="Use --as lws --replicas N, or one --as multinode a group and a router before them.",
        )
    return render_replicas(plan, layout.replicas or 2, tier.gpus, layout.policy)


def _notes(kind: str, spread: Spread) -> Iterator[str]:
    if spread.nodes > 1:
        shape = f"{spread.nodes} machines of {spread.gpus_per_node} GPUs"
        yield f"{shape}: rendered and judged, never run (docs/multi-node.md)"
    elif kind in ("sbatch", "lws"):
        yield f"{kind} was rendered and checked as text, not run on a cluster (docs/multi-node.md)"
