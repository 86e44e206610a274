"""A tier as text: which form a rendering wants, and what must be said beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.guard.finding import Finding
from redline.guard.rules import GuardContext, run_guards
from redline.launch.render.argv import render_argv
from redline.launch.render.compose import render_compose
from redline.launch.render.docker import docker_argv, render_docker
from redline.plan.dispatch import plan_tier
from redline.rig.types import Rig
from redline.settings import Layers

Kind = Literal["argv", "docker", "compose"]
_OF_THIS_MACHINE: Final = frozenset(
    {"tier-status", "memory-fit", "gpu-count", "gpu-mixed", "driver-old", "open-address"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A tier as text, the command as a list, its variables, and notes that belong beside it."""

    slug: str
    kind: str
    form: str
    engine: str
    engine_version: str
    argv: tuple[str, ...]
    env: dict[str, str]
    url: str
    text: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def render_tier(
    catalog: Catalog,
    tier: ResolvedTier,
    rig: Rig,
    models_dir: Path,
    kind: Kind,
    layers: Layers | None = None,
) -> Rendering:
    """Return a tier in one form of text, with what guards would say of it. Nothing needs to be on disk.

    The text may be for another machine, so guards of this one's GPUs, memory and ports are not asked.

    Raises:
        UsageError: the tier has no such form.
    """
    form: Form | None = None if kind == "argv" else "docker"
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, rig, models_dir, form)
    text = {"argv": render_argv, "docker": render_docker, "compose": render_compose}[kind](plan)
    return Rendering(
        slug=tier.slug,
        kind=kind,
        form=plan.form,
        engine=plan.engine,
        engine_version=plan.engine_version,
        argv=docker_argv(plan) if kind == "docker" else plan.argv,
        env=dict(plan.env),
        url=plan.url,
        text=text,
        findings=tier_findings(catalog, tier, rig, layers),
        notes=_notes(plan),
    )


def tier_findings(catalog: Catalog, tier: ResolvedTier, rig: Rig, layers: Layers | None) -> tuple[Finding, ...]:
    """Return what guards say of a tier on whatever machine: those of this one's hardware are not asked."""
    context = GuardContext(
        catalog=catalog, tier=tier, rig=rig, fit=plan_tier(catalog, tier, rig), layers=layers or Layers()
    )
    return tuple(finding for finding in run_guards(context) if finding.rule_id not in _OF_THIS_MACHINE)


def _notes(plan: LaunchPlan) -> tuple[str, ...]:
    if plan.container is None:
        return ()
    return ("the container form was rendered and read, not run against a docker daemon here",)
