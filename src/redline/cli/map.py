"""`map`: the grid of a model's tiers."""

import json
from typing import TYPE_CHECKING

import click

from redline.cli.options import json_option
from redline.cli.screen import program
from redline.errors import ExitCode
from redline.settings import load_settings

if TYPE_CHECKING:
    from redline.ops.grid import Cell, Grid


@click.command("map")
@click.argument("model")
@json_option
def map_(model: str, *, as_json: bool) -> int:
    """Show a model's tiers as the grid they form: series down, drafting depth across."""
    from redline.catalog.load import load_catalog
    from redline.ops.grid import find_model, map_model
    from redline.record.codec import jsonable

    catalog = load_catalog(load_settings().user_catalog_dir)
    grids = map_model(catalog, model)
    if as_json:
        click.echo(json.dumps(jsonable(grids)))
        return ExitCode.DONE
    click.echo(f"{find_model(catalog, model).title}: context, prose/code tok/s, status\n")
    for grid in grids:
        _write_grid(grid)
    click.echo("In brackets: published numbers of another engine version; they do not count towards a status here.")
    click.echo(f"`{program()} show TIER` tells all that is known of one.")
    return ExitCode.DONE


def _write_grid(grid: "Grid") -> None:
    click.echo(click.style(grid.title, bold=True))
    rows: list[list[list[str]]] = [[[""], *([depth] for depth in grid.depths)]]
    for series in grid.rows:
        cells = [[line for cell in series.cells.get(depth, ()) for line in _lines(cell)] for depth in grid.depths]
        rows.append([[series.series, series.weights], *cells])
    widths = [max(len(line) for row in rows for line in row[index] or [""]) for index in range(len(rows[0]))]
    for row in rows:
        for number in range(max(len(cell) for cell in row)):
            words = [cell[number] if number < len(cell) else "" for cell in row]
            click.echo("  " + "   ".join(word.ljust(width) for word, width in zip(words, widths, strict=True)).rstrip())
        click.echo()


def _lines(cell: "Cell") -> list[str]:
    from redline.cli.catalog import speed_words

    projected = " projected" if cell.context_projected else ""
    return [cell.name, f"{cell.context:,} tokens{projected}", speed_words(cell.speed) or "not measured", cell.status]
