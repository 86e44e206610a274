"""`concurrency`."""

import json

import click

from redline.cli.options import json_option
from redline.cli.prove import resumable, resume_option, target_options
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings


@click.command()
@target_options
@click.option("--streams", metavar="N[,N...]", help="Numbers of streams; default 1, 2, 4 ... up to the slots.")
@click.option("--rounds", type=click.IntRange(min=2), default=3, show_default=True, help="At each number.")
@click.option("--tokens", type=click.IntRange(min=16), default=128, show_default=True, help="Tokens an answer.")
@click.option("--prompt-tokens", type=click.IntRange(min=16), help="About so many; default 1024, or a quarter context.")
@click.option("--slots", type=click.IntRange(min=1), help="Slots of the server, where it does not say.")
@click.option("--seed", type=int, default=None, help="Seed of the content; default: a new one for each run.")
@click.option("--request-timeout", "timeout_s", type=float, default=300.0, show_default=True, help="Seconds an answer.")
@resume_option
@json_option
def concurrency(
    *,
    name: str | None,
    url: str | None,
    model: str | None,
    streams: str | None,
    rounds: int,
    tokens: int,
    prompt_tokens: int | None,
    slots: int | None,
    seed: int | None,
    timeout_s: float,
    resume: str | None,
    as_json: bool,
) -> int:
    """Measure streams side by side: what they make together and each, and whether the server holds its slots."""
    from redline.bench.concurrency import PROMPT_TOKENS, ConcurrencyPlan, Round
    from redline.catalog.load import load_catalog
    from redline.cli.proof_view import ProofView
    from redline.cli.screen import Screen
    from redline.ops.concurrency import concurrency as run_concurrency
    from redline.ops.concurrency import default_levels
    from redline.ops.events import ConcurrencyDone
    from redline.ops.prove import find_subject, new_seed, recorded, served_by
    from redline.ops.resume import Resumed, read_earlier_run
    from redline.ops.verify import verdict_of
    from redline.record.codec import jsonable

    settings = load_settings()
    subject = find_subject(load_catalog(settings.user_catalog_dir), settings, name, url, model)
    served = served_by(subject)
    has_slots = slots or served.slots
    plan = ConcurrencyPlan(
        levels=_levels(streams) if streams else default_levels(has_slots),
        rounds=rounds,
        max_tokens=tokens,
        prompt_tokens=prompt_tokens or min(PROMPT_TOKENS, (served.context_tokens or 4096) // 4),
        seed=new_seed() if seed is None else seed,
        slots=has_slots,
        timeout_s=timeout_s,
        send_thinking_switch=subject.facts.model is None or subject.facts.model.capabilities.thinking.offered,
    )
    known: tuple[Round, ...] = ()
    if resume:
        earlier = read_earlier_run(settings.runs_dir, resume, subject.target, "concurrency")
        known, plan = earlier.all_of(Round), next(iter(earlier.all_of(ConcurrencyPlan)), plan)
    code, summary = ExitCode.INCONCLUSIVE, None
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "concurrency", {"prompts": plan.seed}) as run:
        view = ProofView(screen)
        numbers = ", ".join(str(level) for level in plan.levels)
        name_of = subject.target.slug or subject.target.url
        screen.text(
            f"concurrency of {name_of}: {numbers} streams, {plan.rounds} rounds each, "
            f"{plan.max_tokens} tokens, slots {plan.slots or 'unknown'}"
        )
        if resume:
            run.append(Resumed(run_id=resume, taken=len(known)))
        steps = run_concurrency(subject.target, run, plan, known)
        with resumable(screen, run.run_id, "concurrency", steps) as events:
            for event in events:
                view.show(event)
                if isinstance(event, ConcurrencyDone):
                    summary, code = event.summary, verdict_of(event.summary.results)
        run.finish("complete", int(code), f"up to {max(plan.levels)} streams: {code.name.lower()}")
        screen.line("run", run.run_id)
    if as_json:
        click.echo(json.dumps({"summary": jsonable(summary), "run_id": run.run_id, "exit_code": int(code)}))
    return code


def _levels(text: str) -> tuple[int, ...]:
    try:
        levels = tuple(sorted({int(word) for word in text.split(",")}))
    except ValueError:
        levels = ()
    if not levels or not 1 <= min(levels) <= max(levels) <= 1024:
        raise UsageError(f"--streams {text}: expected numbers from 1 to 1024, for example 1,2,4.")
    return levels
