"""`report`: what was measured, for a reader who was not there."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redline.cli.options import json_option
from redline.cli.screen import program
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings

if TYPE_CHECKING:
    from redline.report.model import ReportModel
    from redline.settings import Settings


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write one HTML page.")
@click.option("--md", "as_markdown", is_flag=True, help="Write Markdown to standard output (the default).")
@click.option("--row", "as_row", is_flag=True, help="Write a row of a benchmark table, as Markdown.")
@click.option("--preview", is_flag=True, help="Show what redaction takes out, as a diff; write nothing else.")
@click.option("--no-redact", is_flag=True, help="Take nothing out: for your own eyes.")
@json_option
def report(
    runs: tuple[str, ...],
    html_file: Path | None,
    *,
    as_markdown: bool,
    as_row: bool,
    preview: bool,
    no_redact: bool,
    as_json: bool,
) -> int:
    """Describe runs, ready to be shared: names, paths, addresses and secrets are taken out.

    RUN is the id of a run, its last letters, `last`, or a slug for all runs of a tier. Without RUN: this rig and its
    last boots, failed ones with the end of their logs.
    """
    if preview and no_redact:
        raise UsageError("--preview shows what redaction takes out; --no-redact takes nothing out.")
    settings = load_settings()
    if preview:
        return _preview(settings, runs)
    model = _model(settings, runs, redact=not no_redact)
    if html_file is not None:
        _write_page(model, html_file, quiet=as_json or as_markdown or as_row)
    if as_json:
        from redline.record.codec import jsonable

        click.echo(json.dumps(jsonable(model)))
    if as_row:
        from redline.report.row import benchmark_rows

        click.echo(benchmark_rows(model), nl=False)
    if as_markdown or not (as_json or as_row or html_file):
        from redline.report.markdown import render_markdown

        click.echo(render_markdown(model), nl=False)
    return ExitCode.DONE


def _model(settings: "Settings", runs: tuple[str, ...], *, redact: bool) -> "ReportModel":
    from redline.ops.report import report_rig, report_runs

    return report_runs(settings, runs, redact=redact) if runs else report_rig(settings, redact=redact)


def _write_page(model: "ReportModel", path: Path, *, quiet: bool) -> None:
    from redline.record.files import write_atomic
    from redline.report.html import render_html
    from redline.units import format_bytes

    page = render_html(model)
    write_atomic(path, page, mode=0o644)
    if not quiet:
        click.echo(f"{path}   {format_bytes(len(page.encode()))}   nothing else is needed to view it")


def _preview(settings: "Settings", runs: tuple[str, ...]) -> int:
    from redline.record.redact import preview
    from redline.report.markdown import render_markdown

    before, after = (render_markdown(_model(settings, runs, redact=redact)) for redact in (False, True))
    changes = preview(before, after)
    click.echo(changes or f"Nothing is taken out of this report. `{program()} report` shows it whole.")
    return ExitCode.DONE
