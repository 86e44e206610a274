"""`verify` and `bench`."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen
from redline.errors import ExitCode
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
@click.option(
    "--suite",
    type=click.Choice(["smoke", "full", "stress"]),
    default="smoke",
    show_default=True,
    help="smoke: seconds. full: every function. stress: the edges and the whole context, minutes.",
)
@click.option("--needles", type=click.IntRange(1, 3), default=1, help="Positions asked a rung of the context: 1 or 3.")
@json_option
def verify(name: str | None, url: str | None, model: str | None, suite: str, needles: int, *, as_json: bool) -> int:
    """Check that a server does what it should. Ends with 1 when a check fails, 3 when one could not be asked."""
    import secrets

    from redline.catalog.load import load_catalog
    from redline.checks.suites import Suite
    from redline.cli.up_view import UpView
    from redline.ops.events import ChecksDone
    from redline.ops.prove import find_subject, recorded
    from redline.ops.verify import suite_estimate, verdict_of
    from redline.ops.verify import verify as run_verify
    from redline.record.codec import jsonable

    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    code = ExitCode.INCONCLUSIVE
    results: tuple[Any, ...] = ()
    chosen, facts = Suite(suite), subject.facts
    # A new seed a run: prompts that a server has seen are remembered by its cache and its drafter.
    seed = 1 + secrets.randbelow(10_000)
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "verify", {"checks": seed}) as run:
        screen.text(f"{suite} suite on {subject.target.slug or subject.target.url}")
        if chosen is not Suite.STRESS:
            most = suite_estimate(chosen, facts.model)
            screen.text(f"at most {most.output_tokens:,} output and {most.prompt_tokens:,} prompt tokens")
        view = UpView(screen)
        for event in run_verify(subject.target, facts, run, suite=chosen, seed=seed, needles=needles):
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
