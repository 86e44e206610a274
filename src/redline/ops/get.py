"""Fetches the files of tiers, each artifact once."""

from collections.abc import Iterable, Iterator

from redline.artifacts.store import needed
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.ops.events import Event
from redline.ops.up import fetch_artifact
from redline.settings import Settings


def get(catalog: Catalog, settings: Settings, tiers: Iterable[ResolvedTier]) -> Iterator[Event]:
    """Yield the progress of making the artifacts of tiers present and verified."""
    wanted = {artifact.id for tier in tiers for artifact in needed(catalog, tier.artifact.value)}
    for artifact_id in sorted(wanted):
        yield from fetch_artifact(catalog, settings, artifact_id)
