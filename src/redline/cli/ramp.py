"""`ramp`."""

import json

import click

from redline.cli.options import json_option
from redline.cli.prove import resumable, resume_option, target_options
from redline.errors import ExitCode
from redline.settings import load_settings


@click.command()
@target_options
@click.option("--sessions", type=click.IntRange(min=1), default=2, show_default=True, help="Of twelve turns each.")
@click.option("--seed", type=int, default=None, help="Seed of the content; default: a new one for each run.")
@click.option("--request-timeout", "timeout_s", type=float, default=300.0, show_default=True, help="Seconds an answer.")
@resume_option
@json_option
def ramp(
    *,
    name: str | None,
    url: str | None,
    model: str | None,
    sessions: int,
    seed: int | None,
    timeout_s: float,
    resume: str | None,
    as_json: bool,
) -> int:
    """Play an agent at work, turn upon turn: is the growing conversation reused, or computed anew each time?

    Ends with 1 when a turn failed or nothing was reused, 3 when the measurement decides nothing.
    """
    from redline.catalog.load import load_catalog
    from redline.checks.ramp import RampPlan, RampTurn
    from redline.cli.proof_view import ProofView
    from redline.cli.screen import Screen
    from redline.ops.events import RampDone
    from redline.ops.prove import find_subject, new_seed, recorded, served_by
    from redline.ops.ramp import ramp as run_ramp
    from redline.ops.resume import Resumed, read_earlier_run
    from redline.ops.verify import verdict_of
    from redline.record.codec import jsonable

    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    plan = RampPlan(
        sessions=sessions,
        seed=new_seed() if seed is None else seed,
        context_tokens=served_by(subject).context_tokens or 8192,
        timeout_s=timeout_s,
    )
    known: tuple[RampTurn, ...] = ()
    if resume:
        earlier = read_earlier_run(settings.runs_dir, resume, subject.target, "ramp")
        known, plan = earlier.all_of(RampTurn), next(iter(earlier.all_of(RampPlan)), plan)
    code, summary = ExitCode.INCONCLUSIVE, None
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "ramp", {"sessions": plan.seed}) as run:
        view = ProofView(screen)
        screen.text(
            f"ramp on {subject.target.slug or subject.target.url}: {plan.sessions} x 12 turns, "
            f"context {plan.context_tokens} tokens"
        )
        if resume:
            run.append(Resumed(run_id=resume, taken=len(known)))
        steps = run_ramp(subject.target, subject.facts.model, run, plan, pid=subject.pid, earlier=known)
        with resumable(screen, run.run_id, "ramp", steps) as events:
            for event in events:
                view.show(event)
                if isinstance(event, RampDone):
                    summary, code = event.summary, verdict_of(event.summary.results)
        run.finish("complete", int(code), f"cache: {summary.reuse.value}" if summary else "")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"summary": jsonable(summary), "run_id": run.run_id, "exit_code": int(code)}))
    return code
