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

_STAGES = ("verify", "stress", "soak", "bench", "ramp")


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write one HTML page.")
@click.option("--md", "as_markdown", is_flag=True, help="Write Markdown to standard output (the default).")
@click.option("--full", is_flag=True, help="First verify, stress, soak, measure and ramp the server; takes long.")
@click.option("--bench", "short", is_flag=True, help="First verify and measure the server, in a minute or two.")
@click.option("--resume", is_flag=True, help="Go on with the last --full or --bench of this server that was cut off.")
@click.option("--skip", "skipped", multiple=True, type=click.Choice(_STAGES), help="With --full: leave a stage out.")
@click.option("--soak-turns", type=click.IntRange(min=1), help="With --full: turns of the soak; default 50.")
@click.option(
    "--soak-minutes", type=click.FloatRange(min=0, min_open=True), help="With --full: soak that long instead."
)
@click.option("--request-timeout", "timeout_s", type=float, default=300.0, show_default=True, help="Seconds an answer.")
@click.option("--url", help="With --full or --bench: any OpenAI-compatible endpoint, instead of a server of redline.")
@click.option("--model", help="Model name to send with --url; default: the first that it lists.")
@click.option("--row", "as_row", is_flag=True, help="Write a row of a benchmark table, as Markdown.")
@click.option("--preview", is_flag=True, help="Show what redaction takes out, as a diff; write nothing else.")
@click.option("--no-redact", is_flag=True, help="Take nothing out: for your own eyes.")
@json_option
def report(
    runs: tuple[str, ...],
    html_file: Path | None,
    *,
    as_markdown: bool,
    full: bool,
    short: bool,
    resume: bool,
    skipped: tuple[str, ...],
    soak_turns: int | None,
    soak_minutes: float | None,
    timeout_s: float,
    url: str | None,
    model: str | None,
    as_row: bool,
    preview: bool,
    no_redact: bool,
    as_json: bool,
) -> int:
    """Describe runs, ready to be shared: names, paths, addresses and secrets are taken out.

    RUN is the id of a run, its last letters, `last`, or a slug for all runs of a tier. Without RUN: this rig and its
    last boots, failed ones with the end of their logs. With --full or --bench RUN is a server instead, and the report
    is written into the run's own folder, whatever ends it.
    """
    if preview and no_redact:
        raise UsageError("--preview shows what redaction takes out; --no-redact takes nothing out.")
    settings = load_settings()
    if full or short or resume:
        from redline.cli.report_stages import Asked, report_stages

        if preview or (full and short) or len(runs) > 1:
            raise UsageError("--full, --bench and --preview exclude each other, and take one server.")
        if soak_turns and soak_minutes:
            raise UsageError("--soak-turns and --soak-minutes exclude each other.")
        if resume and (skipped or soak_turns or soak_minutes or short):
            raise UsageError("--resume goes on with the stages that the earlier report has; it takes no others.")
        name = runs[0] if runs else None
        asked = Asked(
            name,
            url,
            model,
            short,
            resume,
            frozenset(skipped),
            soak_turns,
            soak_minutes=soak_minutes,
            timeout_s=timeout_s,
        )
        return report_stages(settings, asked, html_file, redact=not no_redact, as_json=as_json)
    if skipped or soak_turns or soak_minutes or url or model:
        raise UsageError("--skip, --soak-turns, --soak-minutes, --url and --model go with --full or --bench.")
    if preview:
        return _preview(settings, runs)
    found = _model(settings, runs, redact=not no_redact)
    if html_file is not None:
        write_page(found, html_file, quiet=as_json or as_markdown or as_row)
    if as_json:
        from redline.record.codec import jsonable

        click.echo(json.dumps(jsonable(found)))
    if as_row:
        from redline.report.row import benchmark_rows

        click.echo(benchmark_rows(found), nl=False)
    if as_markdown or not (as_json or as_row or html_file):
        from redline.report.markdown import render_markdown

        click.echo(render_markdown(found), nl=False)
    return ExitCode.DONE


def _model(settings: "Settings", runs: tuple[str, ...], *, redact: bool) -> "ReportModel":
    from redline.ops.report import report_rig, report_runs

    return report_runs(settings, runs, redact=redact) if runs else report_rig(settings, redact=redact)


def write_page(model: "ReportModel", path: Path, *, quiet: bool) -> None:
    """Write a report as one page, and say where and how large it is."""
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
