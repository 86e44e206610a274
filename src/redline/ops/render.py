"""A tier as text: which form a rendering wants, and what must be said beside it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from redline.artifacts.disk import tier_artifacts
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog, Undeclared
from redline.engine.launch_plan import LaunchPlan
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.launch.render.argv import render_argv
from redline.launch.render.compose import render_compose
from redline.launch.render.docker import docker_argv, render_docker
from redline.rig.types import Rig

Kind = Literal["argv", "docker", "compose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """A tier as text, the command as a list, its variables, and notes that belong beside it."""

    slug: str
    kind: Kind
    form: str
    engine: str
    engine_version: str
    argv: tuple[str, ...]
    env: dict[str, str]
    url: str
    text: str
    notes: tuple[str, ...]


def render_tier(catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path, kind: Kind) -> Rendering:
    """Return a tier in one form of text. Nothing needs to be on disk, and no guard is asked.

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
        notes=_notes(catalog, tier, plan),
    )


def _notes(catalog: Catalog, tier: ResolvedTier, plan: LaunchPlan) -> tuple[str, ...]:
    notes = [
        f"{artifact.id} is undeclared: {artifact.origin.need}"
        for artifact in tier_artifacts(catalog, tier)
        if isinstance(artifact.origin, Undeclared)
    ]

    if plan.container is not None:
        notes.append("the container form was rendered and read, not run against a docker daemon here")
    return tuple(notes)
