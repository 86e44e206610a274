"""`report --full` and `report --bench`: a server taken through its stages; the report is written whatever ends them."""

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redline.cli.screen import program
from redline.errors import InconclusiveError
from redline.settings import Settings

if TYPE_CHECKING:
    from redline.checks.stages import StagesPlan
    from redline.ops.prove import Subject
    from redline.ops.stages import EarlierStages
    from redline.report.model import ReportModel


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asked for: which server, which stages."""

    name: str | None
    url: str | None
    model: str | None
    short: bool
    resume: bool
    skipped: frozenset[str]
    soak_turns: int | None
    soak_minutes: float | None = None
    timeout_s: float = 300.0


def report_stages(settings: Settings, asked: Asked, html_file: Path | None, *, redact: bool, as_json: bool) -> int:
    """Take a server through the stages; show how it goes, then where the report is. Return the exit code."""
    from redline.catalog.load import load_catalog
    from redline.checks.stages import StageEnded, verdict_of_stages
    from redline.cli.stages_view import StagesView
    from redline.ops.prove import find_subject, recorded
    from redline.ops.stages import REPORT_COMMAND, find_earlier, run_stages, usual_seconds
    from redline.record.codec import jsonable

    catalog = load_catalog(settings.user_catalog_dir)
    subject = find_subject(catalog, settings, asked.name, asked.url, asked.model)
    found = find_earlier(settings, subject)
    if asked.resume and found is None:
        raise InconclusiveError(
            "There is nothing to go on with: no report of this life of the server was cut off.",
            next_step=f"Begin one: `{program()} report --full`.",
        )
    earlier = found if asked.resume else None
    plan = earlier.plan if earlier else _plan(asked)
    ended: list[StageEnded] = []
    where: list[Path] = []
    with (
        _written(settings, where, html_file, redact=redact, quiet=as_json),
        recorded(settings, subject, REPORT_COMMAND, {}) as run,
    ):
        where.append(run.directory)
        if not as_json:
            _head(subject, plan, found, resumes=earlier is not None)
        with StagesView(plan.stages, usual_seconds(settings, subject), quiet=as_json) as view:
            for event in run_stages(settings, subject, run, plan, earlier):
                view.show(event)
                if isinstance(event, StageEnded):
                    ended.append(event)
        code = verdict_of_stages(ended)
        run.finish("complete", int(code), ", ".join(f"{row.stage.value} {row.state.value}" for row in ended))
    if as_json:
        paths = {kind: str(run.directory / f"report.{kind}") for kind in ("md", "html")}
        click.echo(json.dumps({"stages": jsonable(ended), "run_id": run.run_id, **paths, "exit_code": int(code)}))
    return code


def _plan(asked: Asked) -> "StagesPlan":
    from redline.checks.stages import FULL, SHORT, StagesPlan

    stages = SHORT if asked.short else tuple(stage for stage in FULL if stage.value not in asked.skipped)
    return StagesPlan(
        stages=stages,
        soak_turns=asked.soak_turns or 50,
        soak_minutes=asked.soak_minutes,
        timeout_s=asked.timeout_s,
    )


def _head(subject: "Subject", plan: "StagesPlan", found: "EarlierStages | None", *, resumes: bool) -> None:
    click.echo(f"{subject.target.slug or subject.target.url}: {', '.join(plan.stages)}")
    if found is None:
        return
    done = ", ".join(row.stage.value for row in found.settled) or "nothing"
    if resumes:
        click.echo(f"  goes on with report {found.run_id}; done there: {done}")
    else:
        click.echo(f"  report {found.run_id} was cut off (done: {done}): --resume goes on with it; this is a new one")


@contextmanager
def _written(
    settings: Settings, where: list[Path], html_file: Path | None, *, redact: bool, quiet: bool
) -> Iterator[None]:
    """Write the report beside the record of a run that has ended, whatever ended it; `where` is filled meanwhile."""
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(Exception):  # what ended the stages is what the user is to see
            for folder in where:
                _write(settings, folder, html_file, redact=redact, quiet=quiet)
        if not quiet and isinstance(error, KeyboardInterrupt | SystemExit):
            click.echo(f"  stopped  {program()} report --resume goes on, as long as the server lives")
        raise
    for folder in where:
        _write(settings, folder, html_file, redact=redact, quiet=quiet)


def _write(settings: Settings, folder: Path, html_file: Path | None, *, redact: bool, quiet: bool) -> None:
    from redline.cli.report import write_page
    from redline.ops.report import report_runs
    from redline.record.files import write_atomic
    from redline.report.markdown import render_markdown

    model: ReportModel = report_runs(settings, [folder.name], redact=redact)
    write_atomic(folder / "report.md", render_markdown(model))
    write_page(model, folder / "report.html", quiet=True)
    if html_file is not None:
        write_page(model, html_file, quiet=True)
    if not quiet:
        for answer in (model.answers.proved, model.answers.not_proved, model.answers.how_sure):
            click.echo(f"\n{answer.question}: {answer.words}")
        click.echo(f"\n  report   {html_file or folder / 'report.html'}")
        click.echo(f"           {folder / 'report.md'}   ready to paste")
        click.echo(f"           {program()} submit {folder.name} makes files to hand in")
