"""Fetches the files of tiers, each artifact once, or only says whether they are the published ones."""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from redline.artifacts.disk import tier_artifacts
from redline.artifacts.hub_access import hub_access
from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ArtifactState, verify
from redline.artifacts.verify import FileState
from redline.catalog.fields import ResolvedTier
from redline.catalog.knobs import NEEDLESS
from redline.catalog.types import Artifact, Catalog
from redline.errors import ExitCode
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, GuardRefusal, Severity
from redline.guard.rules import run_guards
from redline.ops.events import Event
from redline.ops.stream import follow_callback
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
    for artifact in files_of(catalog, chosen):
        yield from fetch_artifact(catalog, settings, artifact.id)


def files_of(catalog: Catalog, tiers: Iterable[ResolvedTier]) -> tuple[Artifact, ...]:
    """Return all that tiers may serve with, each once: drafters too where drafting is switched off for now."""
    found: dict[str, Artifact] = {}
    for tier in tiers:
        drafter = catalog.drafters[tier.drafter.value].artifact
        found.update({artifact.id: artifact for artifact in tier_artifacts(catalog, tier)})
        if drafter is not None:
            found[drafter] = catalog.artifacts[drafter]
    return tuple(found[name] for name in sorted(found))


def verify_files(
    catalog: Catalog, settings: Settings, tiers: Iterable[ResolvedTier]
) -> Iterator[FileProgress | ArtifactState]:
    """Yield, for each artifact, the progress of reading it in full, then the state of its files."""
    hub = hub_access(settings)
    for artifact in files_of(catalog, tuple(tiers)):
        yield from _verify_one(catalog, settings, artifact.id, hub)


def _verify_one(
    catalog: Catalog, settings: Settings, artifact_id: str, hub: Any
) -> Generator[FileProgress | ArtifactState, None, None]:
    done: list[ArtifactState] = []

    def work(report: Any) -> None:
        done.append(verify(catalog, artifact_id, settings.models_dir, report, hub))

    yield from follow_callback(work)
    yield done[0]


def verdict_of_files(states: Iterable[ArtifactState]) -> ExitCode:
    """Return what the states mean together: a file that is wrong or absent, one that nobody can judge, or all well."""
    found = [state for artifact in states for _, state in artifact.files]
    if not found or any(state not in (FileState.VERIFIED, FileState.UNHASHED) for state in found):
        return ExitCode.CHECK_FAILED
    return ExitCode.INCONCLUSIVE if FileState.UNHASHED in found else ExitCode.DONE


def needless_settings(settings: Settings) -> tuple[str, ...]:
    """Return the names that the user set to have companions fetched; they always are."""
    return tuple(name for name in NEEDLESS if settings.layers.get(name) is not None)


def _undeclared(catalog: Catalog, tier: ResolvedTier) -> tuple[Finding, ...]:
    rig = detect_rig()
    context = GuardContext(catalog=catalog, tier=tier, rig=rig, fit=plan_tier(catalog, tier, rig))
    return tuple(
        finding
        for finding in run_guards(context)
        if finding.rule_id == "undeclared" and finding.severity is Severity.REFUSE
    )
