"""`tiers`, `show` and `get`: the catalogue, for this rig."""

import json
from typing import Any

import click

from redline.cli.options import json_option, settings_from, tier_options
from redline.cli.screen import Screen, program
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings


@click.command()
@click.argument("words", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Also those that do not fit here.")
@json_option
def tiers(words: tuple[str, ...], *, everything: bool, as_json: bool) -> int:
    """List the tiers, and which fit here. Filter by words: part of a slug, a series, a status, `fits`."""
    from redline.catalog.load import load_catalog
    from redline.ops.tiers import list_tiers
    from redline.record.codec import jsonable
    from redline.rig.detect import detect_rig
    from redline.units import format_bytes

    settings = load_settings()
    catalog, rig = load_catalog(settings.user_catalog_dir), detect_rig()
    chosen = words if words or everything else ("fits",)
    rows = list_tiers(catalog, rig, settings.models_dir, chosen)
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        raise UsageError(f"No tier matches {' '.join(chosen)!r}.", next_step=f"`{program()} tiers --all` lists all.")
    click.echo(f"{rig.describe()}, models in {settings.models_dir}\n")
    table: list[tuple[str, ...]] = [("TIER", "WEIGHTS", "DRAFTER", "CONTEXT", "FIT", "FILES", "STATUS")]
    for row in rows:
        files = "present" if row.files == "present" else f"{row.files}, {format_bytes(row.download_bytes)}"
        table.append((row.slug, row.weights, row.drafter, f"{row.context:,}", row.verdict.value, files, row.status))
    write_table(table)
    click.echo(
        f"\n`{program()} show TIER --explain` says where each value comes from; `{program()} up TIER` serves it."
    )
    return ExitCode.DONE


def write_table(rows: list[tuple[str, ...]]) -> None:
    """Write rows in aligned columns, the first row as headings."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        click.echo(click.style(text, bold=True) if number == 0 else text)


@click.command()
@click.argument("slug")
@tier_options
@click.option("--explain", is_flag=True, help="Say where each value comes from.")
@json_option
def show(slug: str, *, explain: bool, as_json: bool, **options: Any) -> int:
    """Show one tier in full, with the settings of this user applied."""
    from redline.catalog.fields import TIER_FIELDS
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import explain_origin, resolve
    from redline.record.codec import jsonable

    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    tier = resolve(catalog, slug, settings.layers)
    if as_json:
        click.echo(json.dumps(jsonable(tier)))
        return ExitCode.DONE
    model, artifact = catalog.models[tier.key.model], catalog.artifacts[tier.artifact.value]
    click.echo(f"{tier.slug}\n  {model.title}, {artifact.title}, {tier.status.value}")
    if artifact.note:
        click.echo(f"  {artifact.note}")
    click.echo()
    width = max(map(len, TIER_FIELDS))
    for name, spec in TIER_FIELDS.items():
        sourced = getattr(tier, name)
        value = "-" if sourced.value is None else str(sourced.value)
        if not explain:
            knob = f"   ({spec.knob})" if spec.knob else ""
            click.echo(f"  {name:<{width}}  {value:<28}{knob}".rstrip())
            continue
        click.echo(f"  {name:<{width}}  {value:<28} {sourced.origin}")
        click.echo(f"  {'':<{width}}  {spec.doc}")
        why = explain_origin(catalog, sourced.origin)
        if why:
            click.echo(f"  {'':<{width}}  source: {why}")
    return ExitCode.DONE


@click.command()
@click.argument("slugs", nargs=-1, required=True)
@json_option
def get(slugs: tuple[str, ...], *, as_json: bool) -> int:
    """Fetch and verify the files of tiers, companions included."""
    from redline.artifacts.progress import FileProgress
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import resolve
    from redline.cli.up_view import UpView
    from redline.ops.events import FilesReady
    from redline.ops.get import get as run_get

    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    wanted = [resolve(catalog, slug, settings.layers) for slug in slugs]
    folders: dict[str, str] = {}
    with Screen(quiet=as_json) as screen:
        view = UpView(screen)
        for event in run_get(catalog, settings, wanted):
            assert isinstance(event, FilesReady | FileProgress)
            view.show(event)
            if isinstance(event, FilesReady):
                folders[event.artifact.id] = event.folder
        for name, folder in folders.items():
            screen.line("", f"{name}   {folder}")
    if as_json:
        click.echo(json.dumps(folders))
    return ExitCode.DONE
