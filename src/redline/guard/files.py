"""Guards about what lies on disk: undeclared, or out of a container's sight. What is missing is fetched."""

from redline.artifacts.disk import tier_artifacts
from redline.catalog.types import Undeclared
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Severity
from redline.guard.registry import guard


@guard("undeclared")
def _undeclared(context: GuardContext) -> Finding | None:
    needs = [
        (artifact.id, artifact.origin.need)
        for artifact in tier_artifacts(context.catalog, context.tier)
        if isinstance(artifact.origin, Undeclared)
    ]
    if not needs:
        return None
    return Finding(
        rule_id="undeclared",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} is made from what nobody has declared: {', '.join(name for name, _ in needs)}. "
        "No public files are known to be these.",
        remedy="Declare in a catalogue file of your own (docs/catalog.md): "
        + "; ".join(f"{name}: {need}" for name, need in needs)
        + ".",
        source=context.tier.artifact.origin,
    )


@guard("outside-mount")
def _outside_mount(context: GuardContext) -> Finding | None:
    if context.disk is None or context.form != "docker":
        return None
    outside = [f"{found.artifact}/{name}" for found in context.disk.artifacts for name in found.outside]
    if not outside:
        return None
    return Finding(
        rule_id="outside-mount",
        severity=Severity.REFUSE,
        message=f"{', '.join(outside[:3])} lead out of the models folder: a container sees that folder only, and the "
        "links would dangle.",
        remedy="Move the files into the models folder, or set MODEL_DIR to a folder that holds them all.",
        source="club-3090#911, club-3090#913",
    )
