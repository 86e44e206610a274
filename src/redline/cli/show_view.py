"""One tier on the screen: its values, where each comes from, what it is made of, and what is known against it."""

import itertools
import textwrap
from typing import Any

import click

from redline.artifacts.disk import tier_artifacts
from redline.catalog.explain import counts, evidence_of, explain_origin, hazards_of
from redline.catalog.fields import ABSENT, TIER_FIELDS, ResolvedTier
from redline.catalog.standing import LIFTED, standing
from redline.catalog.types import Artifact, Catalog, Evidence, Hub, Undeclared


def show_json(catalog: Catalog, tier: ResolvedTier) -> dict[str, Any]:
    """Return a tier as JSON values: every field with its origin, artifacts, hazards and evidence beside them."""
    from redline.record.codec import jsonable

    data: dict[str, Any] = jsonable(tier)
    data["slug"] = tier.slug
    data["why"] = {name: explain_origin(catalog, getattr(tier, name).origin) for name in TIER_FIELDS}
    data["artifacts"] = jsonable(tier_artifacts(catalog, tier))
    data["hazards"] = jsonable(hazards_of(catalog, tier))
    data["evidence"] = [jsonable(row) | {"counts": counts(catalog, row)} for row in evidence_of(catalog, tier.slug)]
    return data


def write_tier(catalog: Catalog, tier: ResolvedTier, *, explain: bool) -> None:
    """Write a tier; with `explain` also the source of each value."""
    model = catalog.models[tier.key.model]
    note = f": {tier.status_note.value}" if tier.status_note.value else ""
    click.echo(f"{tier.slug}\n  {model.title}, {tier.key.series} series, {tier.key.depth.value}")
    click.echo(f"  {tier.status.value}{note}")
    _write_standing(catalog, tier)
    click.echo()
    _write_fields(catalog, tier, explain=explain)
    _write_artifacts(tier_artifacts(catalog, tier))
    _write_hazards(catalog, tier)
    _write_evidence(catalog, tier)


def _write_standing(catalog: Catalog, tier: ResolvedTier) -> None:
    """Write what evidence still lacks for the next status, where evidence can lift this one."""
    found = standing(catalog, tier.slug)
    if tier.status.value in LIFTED and found.next_status and not tier.status.origin.startswith("evidence:"):
        click.echo(_wrapped(f"for {found.next_status.value} it needs: {'; '.join(found.missing)}", "  "))


def _write_fields(catalog: Catalog, tier: ResolvedTier, *, explain: bool) -> None:
    width = max(map(len, TIER_FIELDS))
    for name, spec in TIER_FIELDS.items():
        sourced = getattr(tier, name)
        if sourced.origin.startswith(ABSENT) and not explain:
            continue
        value = "-" if sourced.value is None else str(sourced.value)
        if not explain:
            knob = f"   ({spec.knob})" if spec.knob else ""
            click.echo(f"  {name:<{width}}  {value:<28}{knob}".rstrip())
            continue
        click.echo(f"  {name:<{width}}  {value:<28} {sourced.origin}")
        click.echo(f"  {'':<{width}}  {spec.doc}")
        why = explain_origin(catalog, sourced.origin)
        if why:
            click.echo(_wrapped(f"source: {why}", " " * (width + 4)))


def _write_artifacts(artifacts: tuple[Artifact, ...]) -> None:
    click.echo("\n  made from")
    for artifact in artifacts:
        size = f"   {artifact.size_bytes / 2**30:.2f} GiB" if artifact.size_bytes else ""
        click.echo(f"    {artifact.id}{size}   {_origin_words(artifact)}")
        if isinstance(artifact.origin, Undeclared):
            click.echo(_wrapped(f"undeclared: {artifact.origin.need}", " " * 6, colour="yellow"))
        if artifact.note:
            click.echo(_wrapped(artifact.note, " " * 6))


def _origin_words(artifact: Artifact) -> str:
    origin = artifact.origin
    if isinstance(origin, Hub):
        return f"{origin.repo} at {origin.revision or 'no published revision'}"
    return "nobody has declared its files" if isinstance(origin, Undeclared) else artifact.source


def _write_hazards(catalog: Catalog, tier: ResolvedTier) -> None:
    hazards = hazards_of(catalog, tier)
    if hazards:
        click.echo("\n  known against it")
    for hazard in hazards:
        click.echo(f"    {hazard.id}: {hazard.title} ({hazard.versions})")
        click.echo(_wrapped(f"when: {hazard.trigger}", " " * 6))
        click.echo(_wrapped(f"then: {hazard.effect}", " " * 6))
        click.echo(_wrapped(f"do: {hazard.mitigation}   source: {hazard.source}", " " * 6))


def _write_evidence(catalog: Catalog, tier: ResolvedTier) -> None:
    rows = evidence_of(catalog, tier.slug)
    click.echo("\n  measured" if rows else "\n  measured: nothing is known")
    for _, same in itertools.groupby(rows, key=_circumstances):
        group = list(same)
        row = group[0]
        patched = f" with {', '.join(row.patches)}" if row.patches else ""
        doubt = "" if counts(catalog, row) else "; does not count towards the status here"
        head = f"{row.kind.value} {row.date} on {row.rig}, {row.engine} {row.engine_version}{patched}{doubt}"
        click.echo(_wrapped(f"{head}; source: {row.source}", " " * 4))
        for item in group:
            setup = f"   {item.setup}" if item.setup else ""
            click.echo(f"      {item.metric:<18} {item.value:>13,.7g} {item.unit:<7}{setup}".rstrip())


def _circumstances(row: Evidence) -> tuple[object, ...]:
    return (row.kind, row.date, row.rig, row.engine, row.engine_version, row.patches, row.source)


def _wrapped(text: str, indent: str, colour: str | None = None) -> str:
    filled = textwrap.fill(
        text,
        width=110,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return click.style(filled, fg=colour) if colour else filled
