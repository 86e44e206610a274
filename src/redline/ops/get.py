"""Fetches the files of tiers, each artifact once."""

from collections.abc import Iterable, Iterator

from redline.artifacts.disk import tier_artifacts
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, GuardRefusal, Severity
from redline.guard.rules import run_guards
from redline.ops.events import Event
from redline.ops.up import fetch_artifact
from redline.plan.dispatch import plan_tier
from redline.rig.detect import detect_rig
from redline.settings import Settings


def get(catalog: Catalog, settings: Settings, tiers: Iterable[ResolvedTier]) -> Iterator[Event]:
    """Yield the progress of making the artifacts of tiers present and verified.

    Raises:
        GuardRefusal: a tier is made from what nobody has declared; nothing was fetched.
    """
    chosen = tuple(tiers)
    undeclared = tuple(finding for tier in chosen for finding in _undeclared(catalog, tier))
    if undeclared:
        raise GuardRefusal(undeclared)
    wanted = {artifact.id for tier in chosen for artifact in tier_artifacts(catalog, tier)}
    for artifact_id in sorted(wanted):
        yield from fetch_artifact(catalog, settings, artifact_id)


def _undeclared(catalog: Catalog, tier: ResolvedTier) -> tuple[Finding, ...]:
    rig = detect_rig()
    context = GuardContext(catalog=catalog, tier=tier, rig=rig, fit=plan_tier(catalog, tier, rig))
    return tuple(
        finding
        for finding in run_guards(context)
        if finding.rule_id == "undeclared" and finding.severity is Severity.REFUSE
    )
