"""`tiers`, `show` and `get`: the catalogue, for this rig."""

import json
from typing import TYPE_CHECKING, Any

import click

from redline.cli.options import json_option, settings_from, tier_options
from redline.cli.screen import Screen, program
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings

if TYPE_CHECKING:
    from redline.ops.tiers import Speed, TierRow


@click.command()
@click.argument("words", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Also those that do not fit here.")
@json_option
def tiers(words: tuple[str, ...], *, everything: bool, as_json: bool) -> int:
    """List the tiers, and which fit here.

    Filter by words, all of which must hold: `fits`, a context (`'>=200k'`), `gpu:2`, a status, series, depth, topology,
    engine or drafter, or part of a name. Without words: those that fit.
    """
    from redline.catalog.load import load_catalog
    from redline.ops.tiers import list_tiers
    from redline.record.codec import jsonable
    from redline.rig.detect import detect_rig

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
    head = ("TIER", "WEIGHTS", "DRAFTER", "CONTEXT", "FIT", "FILES", "STATUS", "PROSE/CODE TOK/S", "PORT")
    write_table([head, *(_tier_cells(row) for row in rows)])
    if any(row.speed and not row.speed.counts for row in rows):
        click.echo(
            "\nNumbers are published ones, with the engine version they were made on; none in brackets counts towards "
            "a status here.\nA blank means that nobody is known to have measured it."
        )
    click.echo(
        f"\n`{program()} show TIER --explain` says where each value comes from; `{program()} up TIER` serves it."
    )
    return ExitCode.DONE


def _tier_cells(row: "TierRow") -> tuple[str, ...]:
    from redline.units import format_bytes

    size = f", {format_bytes(row.download_bytes)}" if row.download_bytes else ""
    files = "present" if row.files == "present" else f"{row.files}{size}"
    return (
        row.slug,
        row.weights,
        row.drafter,
        f"{row.context:,}",
        row.verdict.value,
        files,
        row.status,
        speed_words(row.speed),
        str(row.port),
    )


def speed_words(speed: "Speed | None") -> str:
    """Return decode rates of prose and code, in brackets with their engine where they do not count; blank for none."""
    if speed is None:
        return ""
    narrative, code = (f"{round(value, 2):g}" if value else "-" for value in (speed.narrative_tok_s, speed.code_tok_s))
    if speed.counts:
        return f"{narrative}/{code}"
    return f"({narrative}/{code} on {speed.engine_version}{' patched' if speed.patched else ''})"


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
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import resolve
    from redline.cli.findings import write_setting_warnings
    from redline.cli.show_view import show_json, write_tier

    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    tier = resolve(catalog, slug, settings.layers)
    if as_json:
        click.echo(json.dumps(show_json(catalog, tier)))
        return ExitCode.DONE
    write_setting_warnings(settings.layers)
    write_tier(catalog, tier, explain=explain)
    return ExitCode.DONE


@click.command()
@click.argument("slugs", nargs=-1, required=True)
@click.option("--verify-only", is_flag=True, help="Fetch nothing: read every file in full and say what it is.")
@json_option
def get(slugs: tuple[str, ...], *, verify_only: bool, as_json: bool) -> int:
    """Fetch and verify the files of tiers, companions included.

    A download that was interrupted goes on where it was. Ends with 1 when --verify-only finds a file absent or wrong.
    """
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import resolve
    from redline.cli.files_view import show_fetch, show_verify
    from redline.ops.get import needless_settings

    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    wanted = [resolve(catalog, slug, settings.layers) for slug in slugs]
    with Screen(quiet=as_json) as screen:
        for name in needless_settings(settings):
            screen.line("note", f"{name} is needless: companions are always fetched")
        show = show_verify if verify_only else show_fetch
        code, found = show(screen, catalog, settings, wanted)
    if as_json:
        click.echo(json.dumps(found))
    return code
