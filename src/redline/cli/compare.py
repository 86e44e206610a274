"""`compare`: two runs, or two sets of runs, with an exit code that a pipeline can go by."""

import json
from pathlib import Path

import click

from redline.cli.options import json_option
from redline.settings import load_settings

_COLOURS = {"faster": "green", "equivalent": "green", "slower": "red", "undetermined": "yellow"}


@click.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--margin",
    default=3.0,
    show_default=True,
    type=click.FloatRange(0, 100, min_open=True),
    help="Percent within which two arms count as equivalent.",
)
@click.option("--md", "as_markdown", is_flag=True, help="Write Markdown.")
@click.option("--svg", "svg_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the ratios as SVG.")
@json_option
def compare(a: str, b: str, margin: float, svg_file: Path | None, *, as_markdown: bool, as_json: bool) -> int:
    """Compare B against A: runs (several with commas between), or slugs for all runs of a tier.

    Ends with 0 when B is not slower, 1 when it is slower, 3 when that cannot be told. A verdict needs three boots an
    arm, and arms that differ in one respect.
    """
    from redline.ops.compare import compare_runs
    from redline.record.codec import jsonable

    found = compare_runs(load_settings(), a, b, margin=margin / 100)
    if svg_file is not None:
        _write_svg(found, svg_file)
    if as_json:
        click.echo(json.dumps({**jsonable(found), "exit_code": found.exit_code}))
    elif as_markdown:
        from redline.report.comparison import comparison_markdown

        click.echo(comparison_markdown(found), nl=False)
    else:
        _show(found)
    return found.exit_code


def _show(found: object) -> None:
    from redline.bench.compare import Comparison
    from redline.cli.catalog import write_table
    from redline.report.comparison import HEADINGS, arm_words, difference_words, table_rows, verdict_words

    assert isinstance(found, Comparison)
    for label, words in zip("AB", arm_words(found), strict=True):
        click.echo(f"{label}  {words}")
    click.echo(f"differs in {difference_words(found)}\n")
    rows = table_rows(found)
    if rows:
        write_table([HEADINGS, *rows])
    click.echo("\n" + click.style(verdict_words(found), fg=_COLOURS[found.verdict.value], bold=True))


def _write_svg(found: object, path: Path) -> None:
    from redline.bench.compare import Comparison
    from redline.errors import InconclusiveError
    from redline.record.files import write_atomic
    from redline.report.comparison import comparison_figure
    from redline.report.svg import standalone

    assert isinstance(found, Comparison)
    drawing = comparison_figure(found)
    if drawing is None:
        raise InconclusiveError("There is no ratio to draw.", next_step="Measure both arms with the same benchmark.")
    write_atomic(path, standalone(drawing.wide), mode=0o644)
