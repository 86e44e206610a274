"""What `tune` shows: the points, what each start does, and the table at the end."""

import json
from collections.abc import Iterable

import click

from redline.bench.tune import TunePlan, TunePoint, TuneRow, TuneSummary
from redline.catalog.types import Catalog
from redline.cli.prove import resumable
from redline.cli.screen import Screen, program
from redline.cli.up_view import UpView
from redline.errors import ExitCode
from redline.ops.events import CheckDone, SampleDone
from redline.ops.tune import PointBegins, TuneDone, TuneJob, tune
from redline.record.codec import jsonable
from redline.record.run import create_run
from redline.rig.detect import detect_rig
from redline.settings import Settings
from redline.units import format_bytes


def setting_words(point: TunePoint) -> str:
    """Return a point as a user would set it: 'SPEC_N=7 LOOKUP_KEY=4'."""
    return " ".join(f"{name}={value}" for name, value in point.settings.items())


def show_points(plan: TunePlan, points: Iterable[TunePoint]) -> None:
    """Write what would be started, and what is refused."""
    screen = Screen()
    screen.text(f"{plan.slug}: {plan.boots} start(s) a point, {plan.prompts} prompts of each class")
    for point in points:
        needs = f"plans {format_bytes(point.planned_bytes)}" if point.planned_bytes else ""
        words = f"refused: {point.refused}" if point.refused else f"context {point.context_tokens}   {needs}"
        screen.line(str(point.number), f"{setting_words(point):<34} {words}")


def run_search(catalog: Catalog, settings: Settings, job: TuneJob, *, as_json: bool) -> int:
    """Search, show, record; return the exit code."""
    plan, rig, summary = job.plan, detect_rig(), TuneSummary(rows=())
    run = create_run(
        settings.runs_dir,
        "tune",
        url=None,
        slug=plan.slug,
        driver_version=rig.driver_version,
        rig=rig.fingerprint,
        seeds={"prompts": plan.seed},
        overrides=job.overrides,
    )
    with Screen(quiet=as_json) as screen, run:
        screen.text(f"search of {plan.slug}: {len(plan.points())} points, {plan.boots} start(s) each")
        view = UpView(screen)
        with resumable(screen, run.run_id, "tune", tune(catalog, settings, run, job)) as events:
            for event in events:
                match event:
                    case PointBegins():
                        screen.line("start", f"{event.number} of {event.total}  {setting_words(event.point)}")
                        view = UpView(screen)
                    case TuneDone():
                        summary = event.summary
                    case CheckDone() | SampleDone():
                        view.show(event)
        show_table(screen, plan.slug, summary)
        whole = not summary.stopped and any(row.worth_having for row in summary.rows)
        code = ExitCode.DONE if whole else ExitCode.INCONCLUSIVE
        run.finish("complete", int(code), summary.stopped or f"{len(summary.rows)} points")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"summary": jsonable(summary), "run_id": run.run_id, "exit_code": int(code)}))
    return code


def show_table(screen: Screen, slug: str, summary: TuneSummary) -> None:
    """Write a line a point, those worth having first, and how to serve the fastest."""
    rows = sorted(
        summary.rows, key=lambda row: (not row.worth_having, -(row.decode_tok_s.mean if row.decode_tok_s else 0))
    )
    for row in rows:
        screen.line("keep" if row.worth_having else "", _row_words(row), colour="green" if row.worth_having else None)
    if summary.stopped:
        screen.line("stopped", summary.stopped)
    best = next((row for row in rows if row.worth_having), None)
    if best is not None:
        settings = " ".join(f"--set {name}={value}" for name, value in best.point.settings.items())
        screen.line("next", f"{program()} up {slug} {settings}")


def _row_words(row: TuneRow) -> str:
    name = f"{row.point.number:>2}  {setting_words(row.point):<34}"
    if row.decode_tok_s is None:
        return f"{name} {'refused: ' if row.point.refused else ''}{row.why}"
    ratio = row.ratio
    interval = f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio and ratio.low is not None and ratio.high else ""
    against = f"   {ratio.mean:.2f}x{interval}" if ratio else ""
    memory = format_bytes(row.memory_bytes) if row.memory_bytes else "-"
    tail = f"   {row.why}" if row.why else ""
    return f"{name} {row.decode_tok_s.mean:6.1f} tok/s{against}   {row.point.context_tokens} tokens   {memory}{tail}"
