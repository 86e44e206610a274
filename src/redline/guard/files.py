"""Guards about what lies on disk: undeclared, missing, damaged, out of a container's sight."""

from redline.artifacts.disk import Presence, fetchable, tier_artifacts
from redline.catalog.types import Hub, Undeclared
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Override, Severity
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


@guard("files-missing")
def _files_missing(context: GuardContext) -> Finding | None:
    if context.disk is None:
        return None
    lacking = []
    for found in context.disk.artifacts:
        artifact = context.catalog.artifacts[found.artifact]
        if (
            found.presence is Presence.ABSENT
            and not fetchable(artifact)
            and not isinstance(artifact.origin, Undeclared)
        ):
            lacking.append((artifact, found.folder))
    if not lacking:
        return None
    weights = lacking[0][0].id == context.tier.artifact.value
    what = ", ".join(artifact.title for artifact, _ in lacking)
    commands = [
        f"hf download {artifact.origin.repo} --local-dir {folder}"
        for artifact, folder in lacking
        if isinstance(artifact.origin, Hub)
    ]
    return Finding(
        rule_id="files-missing",
        severity=Severity.REFUSE,
        message=f"{'Files are' if weights else 'The weights are there, and a companion is'} missing: {what}.",
        remedy=f"redline get {context.tier.slug}, or: {'; '.join(commands)}",
        source="the tier's artifacts in the catalogue",
    )


@guard("files-incomplete")
def _files_incomplete(context: GuardContext) -> Finding | None:
    if context.disk is None:
        return None
    said = []
    for found in context.disk.artifacts:
        if found.presence is Presence.PARTIAL and not fetchable(context.catalog.artifacts[found.artifact]):
            words = [
                *(f"{name} is missing" for name in found.missing),
                *(f"{name} is cut off or damaged" for name in found.damaged),
            ]
            more = f" and {len(words) - 3} more" if len(words) > 3 else ""
            said.append(f"{found.artifact}: {', '.join(words[:3])}{more}")
    if not said:
        return None
    return Finding(
        rule_id="files-incomplete",
        severity=Severity.REFUSE,
        message=f"A checkpoint is not whole: {'; '.join(said)}. The engine would find out only while loading.",
        remedy=f"redline get {context.tier.slug} fetches what is missing.",
        source="the checkpoint's own index and headers",
        override=Override.IGNORE_INTEGRITY,
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
