"""`verify`, `bench` and `runs`."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings

F = TypeVar("F", bound=Callable[..., Any])


def target_options(function: F) -> F:
    """Add the options that say which server."""
    options = (
        click.argument("name", required=False),
        click.option("--url", help="Any OpenAI-compatible endpoint, instead of a server of redline."),
        click.option("--model", help="Model name to send with --url; default: the first that it lists."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@target_options
@click.option("--suite", type=click.Choice(["smoke"]), default="smoke", show_default=True)
@json_option
def verify(name: str | None, url: str | None, model: str | None, suite: str, *, as_json: bool) -> int:
    """Check that a server does what it should. Ends with 1 when a check fails, 3 when one could not be asked."""
    from redline.catalog.load import load_catalog
    from redline.cli.up_view import UpView
    from redline.ops.events import ChecksDone
    from redline.ops.prove import find_subject, recorded
    from redline.ops.verify import verdict_of
    from redline.ops.verify import verify as run_verify
    from redline.record.codec import jsonable

    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    code = ExitCode.INCONCLUSIVE
    results: tuple[Any, ...] = ()
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "verify", {}) as run:
        screen.text(f"{suite} suite on {subject.target.slug or subject.target.url}")
        view = UpView(screen)
        for event in run_verify(subject.target, subject.model, run, drafting=subject.drafting):
            if isinstance(event, ChecksDone):
                code, results = verdict_of(event.results), event.results
                _list_passed(screen, event.results)
            view.show(event)
        run.finish("complete", int(code), f"{suite}: {code.name.lower()}")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"suite": suite, "results": jsonable(results), "run_id": run.run_id, "exit_code": code}))
    return code


def _list_passed(screen: Screen, results: tuple[Any, ...]) -> None:
    for row in results:
        if row.status == "pass":
            screen.line("pass", f"{row.check_id:<20} {row.message}   {row.duration_s:.1f} s")
        elif row.status == "skip":
            screen.line("skip", f"{row.check_id:<20} {row.message}")


@click.command()
@target_options
@click.option("--quick", is_flag=True, required=True, help="A few prompts of each class; under 45 s.")
@click.option("--class", "classes", multiple=True, type=click.Choice(["prose", "code", "chat", "edit"]))
@json_option
def bench(
    name: str | None,
    url: str | None,
    model: str | None,
    classes: tuple[str, ...],
    *,
    quick: bool,
    as_json: bool,
) -> int:
    """Measure a server, with 95 % intervals. Every prompt is sent once; rates come from the server's token counts."""
    from redline.bench.quick import QuickRegime
    from redline.catalog.load import load_catalog
    from redline.cli.up_view import UpView
    from redline.ops.bench import bench_quick
    from redline.ops.events import Measured
    from redline.ops.prove import find_subject, recorded
    from redline.record.codec import jsonable
    from redline.workload.prompts import SHORT_CLASSES, PromptClass

    assert quick
    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    regime = QuickRegime(classes=tuple(PromptClass(word) for word in classes) or SHORT_CLASSES)
    summaries: tuple[Any, ...] = ()
    with (
        Screen(quiet=as_json) as screen,
        recorded(settings, subject, "bench", {"prompts": regime.seed}) as run,
    ):
        screen.text(
            f"quick benchmark of {subject.target.slug or subject.target.url}: {regime.per_class} prompts a class, "
            f"{regime.max_tokens} tokens, temperature {regime.temperature:g}, one at a time"
        )
        view = UpView(screen)
        for event in bench_quick(subject.target, run, regime):
            view.show(event)
            if isinstance(event, Measured):
                summaries = event.summaries
        failed = bool(summaries) and all(row.decode_tok_s is None for row in summaries)
        code = ExitCode.CHECK_FAILED if failed else ExitCode.DONE
        run.finish("complete", int(code), "quick benchmark")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"summaries": jsonable(summaries), "run_id": run.run_id, "exit_code": int(code)}))
    return code


@click.command()
@click.option("-n", "--limit", default=20, show_default=True, help="How many of the latest.")
@json_option
def runs(limit: int, *, as_json: bool) -> int:
    """List what was done and measured, newest first."""
    from redline.cli.catalog import write_table
    from redline.record.codec import jsonable
    from redline.record.run import list_runs

    if limit < 1:
        raise UsageError("-n must be at least 1.")
    rows = list_runs(load_settings().runs_dir)[:limit]
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        click.echo("Nothing was recorded yet.")
        return ExitCode.DONE
    table: list[tuple[str, ...]] = [("RUN", "WHAT", "WHEN", "TIER", "OUTCOME", "SUMMARY")]
    for row in rows:
        outcome = row.problem or row.outcome
        when = row.started_at.replace("T", " ").removesuffix("+00:00")
        table.append((row.run_id, row.command, when, row.slug or row.url or "-", outcome, row.summary))
    write_table(table)
    return ExitCode.DONE
