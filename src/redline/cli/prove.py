"""`verify`."""

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen
from redline.errors import ExitCode, UsageError
from redline.settings import Settings, load_settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


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


def resume_option(function: F) -> F:
    """Add `--resume`."""
    return click.option("--resume", metavar="RUN", help="Go on with a run of this server that was cut off.")(function)


@contextmanager
def closing_events(events: Iterator[T]) -> Iterator[Iterator[T]]:
    """Hand on events and close them with the block: a command that is interrupted records what there is and stops."""
    try:
        yield events
    finally:
        if isinstance(events, Generator):
            events.close()


@contextmanager
def resumable(screen: Screen, run_id: str, command: str, events: Iterator[T]) -> Iterator[Iterator[T]]:
    """Hand on the events of a long command; when the block is interrupted, say how to go on.

    The events are closed before the run is, wherever Ctrl-C fell: only then does the record say what there is.
    """
    try:
        with closing_events(events):
            yield events
    except (KeyboardInterrupt, SystemExit):
        screen.line("stopped", f"run {run_id} holds what there is; redline {command} --resume {run_id} goes on")
        raise


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
@click.option("--reference", is_flag=True, help="Full suite: start the tier without drafting beside it, and compare.")
@click.option("--reference-url", metavar="URL", help="Full suite: compare with this server of the same weights.")
@resume_option
@json_option
def verify(
    *,
    name: str | None,
    url: str | None,
    model: str | None,
    suite: str,
    needles: int,
    reference: bool,
    reference_url: str | None,
    resume: str | None,
    as_json: bool,
) -> int:
    """Check that a server does what it should. Ends with 1 when a check fails, 3 when one could not be asked."""
    import secrets

    from redline.catalog.load import load_catalog
    from redline.checks.check import CheckResult
    from redline.checks.suites import Suite
    from redline.cli.up_view import UpView
    from redline.ops.events import ChecksDone
    from redline.ops.prove import find_subject, recorded
    from redline.ops.resume import Resumed, read_earlier_run
    from redline.ops.verify import Spent, suite_estimate, verdict_of
    from redline.ops.verify import verify as run_verify
    from redline.record.codec import jsonable

    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    subject = find_subject(catalog, settings, name, url, model)
    code = ExitCode.INCONCLUSIVE
    results: tuple[Any, ...] = ()
    # A new seed a run: prompts that a server has seen are remembered by its cache and its drafter.
    seed = 1 + secrets.randbelow(10_000)
    known: tuple[CheckResult, ...] = ()
    if resume:
        earlier = read_earlier_run(settings.runs_dir, resume, subject.target, "verify")
        seed, known = earlier.manifest.seeds.get("checks", seed), earlier.all_of(CheckResult)
        suite = next((row.suite for row in earlier.all_of(Spent)), suite)
    if (reference or reference_url) and suite != "full":
        raise UsageError("Answers are compared with a reference in the full suite only.", next_step="--suite full")
    chosen, facts = Suite(suite), subject.facts
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "verify", {"checks": seed}) as run:
        if resume:
            run.append(Resumed(run_id=resume, taken=len(known)))
        screen.text(f"{suite} suite on {subject.target.slug or subject.target.url}")
        if chosen is not Suite.STRESS:
            most = suite_estimate(chosen, facts.model)
            screen.text(f"at most {most.output_tokens:,} output and {most.prompt_tokens:,} prompt tokens")
        with ExitStack() as stack:
            witness = replace(subject.target, url=_base(reference_url), server_id=None) if reference_url else None
            if reference:
                witness = stack.enter_context(_reference(catalog, settings, subject, screen))
            view = UpView(screen)
            events = run_verify(
                subject.target, facts, run,
                suite=chosen, seed=seed, needles=needles, reference=witness, earlier=known,
            )  # fmt: skip
            for event in stack.enter_context(resumable(screen, run.run_id, "verify", events)):
                if isinstance(event, ChecksDone):
                    code, results = verdict_of(event.results), event.results
                    _list_passed(screen, event.results)
                view.show(event)
        run.finish("complete", int(code), f"{suite}: {code.name.lower()}")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"suite": suite, "results": jsonable(results), "run_id": run.run_id, "exit_code": code}))
    return code


def _base(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")


@contextmanager
def _reference(catalog: Any, settings: Settings, subject: Any, screen: Screen) -> Iterator[Any]:
    """Serve the tier without drafting for as long as the block runs."""
    from redline.cli.up_view import UpView
    from redline.launch.stop import stop
    from redline.ops.reference import start_reference
    from redline.ops.servers import target_of

    screen.text("the same tier without drafting starts beside it")
    view = UpView(screen)

    def shown() -> Any:
        steps = start_reference(catalog, settings, subject.target.slug, subject.conditions)
        while True:
            try:
                view.show(next(steps))
            except StopIteration as done:
                return done.value

    folder, record = shown()
    try:
        yield target_of(record, settings)
    finally:
        stop(folder, record)


def _list_passed(screen: Screen, results: tuple[Any, ...]) -> None:
    for row in results:
        if row.status == "pass":
            screen.line("pass", f"{row.check_id:<20} {row.message}   {row.duration_s:.1f} s")
        elif row.status == "skip":
            screen.line("skip", f"{row.check_id:<20} {row.message}")
