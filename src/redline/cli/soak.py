"""`soak`."""

import json

import click

from redline.cli.options import json_option
from redline.cli.prove import resumable, target_options
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings


@click.command()
@target_options
@click.option("--turns", type=click.IntRange(min=1), default=None, help="Turns to take; default 60 (12 sessions).")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Soak that long instead.")
@click.option("--kind", type=click.Choice(["growing", "fresh"]), default="growing", show_default=True)
@click.option("--seed", type=int, default=None, help="Seed of the content; default: a new one for each run.")
@click.option("--request-timeout", "timeout_s", type=float, default=300.0, show_default=True, help="Seconds an answer.")
@click.option("--resume", metavar="RUN", help="Go on with a soak that was cut off.")
@json_option
def soak(
    *,
    name: str | None,
    url: str | None,
    model: str | None,
    turns: int | None,
    minutes: float | None,
    kind: str,
    seed: int | None,
    timeout_s: float,
    resume: str | None,
    as_json: bool,
) -> int:
    """Talk to a server for long, with content that never repeats: errors, empty answers, memory, rate, acceptance.

    Trends need ten sessions of five turns. Ends with 1 when something failed, 3 when a trend stays open.
    """
    from redline.catalog.load import load_catalog
    from redline.checks.soak import SessionKind, SoakPlan
    from redline.cli.proof_view import ProofView
    from redline.cli.screen import Screen
    from redline.ops.events import SoakDone
    from redline.ops.prove import find_subject, new_seed, recorded, served_by
    from redline.ops.soak import read_earlier
    from redline.ops.soak import soak as run_soak
    from redline.ops.verify import verdict_of
    from redline.record.codec import jsonable

    if turns is not None and minutes is not None:
        raise UsageError("--turns and --minutes exclude each other.")
    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    earlier = read_earlier(settings.runs_dir, resume, subject.target) if resume else None
    plan = (
        earlier.plan
        if earlier
        else SoakPlan(
            kind=SessionKind(kind),
            turns=None if minutes else turns or 60,
            minutes=minutes,
            seed=new_seed() if seed is None else seed,
            context_tokens=served_by(subject).context_tokens or 8192,
            timeout_s=timeout_s,
        )
    )
    code, summary = ExitCode.INCONCLUSIVE, None
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "soak", {"sessions": plan.seed}) as run:
        view = ProofView(screen)
        length = f"{plan.minutes:g} min" if plan.minutes else f"{plan.turns} turns"
        screen.text(f"soak of {subject.target.slug or subject.target.url}: {plan.kind.value} sessions, {length}")
        steps = run_soak(subject.target, subject.facts.model, run, plan, pid=subject.pid, earlier=earlier)
        with resumable(screen, run.run_id, "soak", steps) as events:
            for event in events:
                view.show(event)
                if isinstance(event, SoakDone):
                    summary, code = event.summary, verdict_of(event.summary.results)
        run.finish("complete", int(code), summary.statement if summary else "")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"summary": jsonable(summary), "run_id": run.run_id, "exit_code": int(code)}))
    return code
