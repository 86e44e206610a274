"""What `bench` does in its three forms: a quick look, boots of one server, two tiers against each other."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from redline.bench.arms import ClassVerdict
from redline.bench.prefill import PrefillSample, PrefillSummary
from redline.bench.quick import BenchSample, ClassSummary, QuickRegime
from redline.bench.regime import CANONICAL, HONEST_GREEDY, HONEST_SAMPLED, Regime
from redline.catalog.types import Catalog
from redline.cli.bench import exit_of, write_json
from redline.cli.proof_view import ProofView
from redline.cli.prove import closing_events, resumable
from redline.cli.screen import Screen
from redline.cli.up_view import UpView
from redline.errors import ExitCode, UsageError
from redline.ops.ab import AbPlan, bench_ab, require_comparable, settled
from redline.ops.bench import BenchJob, bench_quick, bench_regime, over_boots
from redline.ops.beside import are_urls, bench_beside
from redline.ops.events import Began, Measured, PrefillDone, PrefillMeasured, SampleDone, SettleDone
from redline.ops.prove import bench_job, find_subject, recorded
from redline.ops.reboot import reboot
from redline.ops.resume import Resumed, read_earlier_run
from redline.ops.servers import pick_server, target_of
from redline.record.run import Run, create_run
from redline.rig.detect import detect_rig
from redline.rig.links import rig_record
from redline.settings import Settings

Where = tuple[str | None, str | None, str | None]


def run_quick(catalog: Catalog, settings: Settings, where: Where, regime: QuickRegime, *, as_json: bool) -> int:
    """Take a quick look at a server."""
    subject = find_subject(catalog, settings, *where)
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
        write_json(summaries=summaries, run_id=run.run_id, exit_code=int(code))
    return code


def chosen_regime(options: dict[str, Any]) -> Regime:
    """Return the regime that the options name, narrowed to the classes that they name."""
    regime = CANONICAL if options["canonical"] else HONEST_SAMPLED if options["sampled"] else HONEST_GREEDY
    kinds = options["kinds"] or regime.classes
    missing = [kind.value for kind in kinds if kind not in regime.classes]
    if missing:
        raise UsageError(f"{regime.name} has no class {', '.join(missing)}.")
    if options["width"] is not None:
        if regime.width is None:
            raise UsageError(f"{regime.name} measures a fixed number of times; --width does not go with it.")
        regime = replace(regime, width=options["width"])
    return replace(regime, classes=kinds)


def run_boots(catalog: Catalog, settings: Settings, where: Where, options: dict[str, Any], *, as_json: bool) -> int:
    """Measure a server by a regime, over as many boots as asked; the first is the running one."""
    regime = chosen_regime(options)
    subject = find_subject(catalog, settings, *where)
    boots = options["boots"] or 1
    if boots > 1 and subject.target.server_id is None:
        raise UsageError("--boots restarts the server, and this one was not started by redline.")
    job = bench_job(
        settings,
        subject,
        prefill=options["prefill"],
        timeout_s=options["timeout_s"],
        settle_s=options["settle_s"],
    )
    if options["resume"]:
        earlier = read_earlier_run(settings.runs_dir, options["resume"], subject.target, "bench")
        regime = next(iter(earlier.all_of(Regime)), regime)
        known, long_ones = earlier.all_of(BenchSample), earlier.all_of(PrefillSample)
        used = job.used - {(row.prompt_class.value, row.prompt_index) for row in known}
        job = replace(job, earlier=known, earlier_prefill=long_ones, used=used)
    samples: list[BenchSample] = list(job.earlier)
    summaries: tuple[ClassSummary, ...] = ()
    long: tuple[PrefillSummary, ...] = ()
    with Screen(quiet=as_json) as screen, recorded(settings, subject, "bench", {"prompts": regime.seed or 0}) as run:
        screen.text(f"{regime.name} on {subject.target.slug or subject.target.url}, {boots} boot{'s' * (boots > 1)}")
        view, proof = UpView(screen), ProofView(screen)
        if options["resume"]:
            run.append(Resumed(run_id=options["resume"], taken=len(job.earlier) + len(job.earlier_prefill)))
        steps = _over_boots(settings, job, run, regime, boots, view)
        with resumable(screen, run.run_id, "bench", steps) as events:
            for event in events:
                if isinstance(event, SampleDone):
                    samples.append(event.sample)
                elif isinstance(event, Measured):
                    summaries = event.summaries
                if isinstance(event, PrefillMeasured):
                    long = event.summaries
                if isinstance(event, PrefillDone | PrefillMeasured | SettleDone):
                    proof.show(event)
                else:
                    view.show(event)
        together = over_boots(samples, regime) if boots > 1 else ()
        for row in together:
            run.append(row)
            mean, between = row.decode_tok_s.mean, row.decode_tok_s.between_cv
            spread = f" (+-{mean.half_width:.1f})" if mean.half_width is not None else ""
            beyond = f", between boots {between:.1%}" if between is not None else ""
            screen.line("boots", f"{row.prompt_class.value:<10} {mean.mean:.1f} tok/s{spread} over {mean.n}{beyond}")
        code = exit_of(summaries)
        run.finish("complete", int(code), regime.name)
        screen.line("run", run.run_id)
    if as_json:
        write_json(
            regime=regime.name,
            summaries=summaries,
            prefill=long,
            boots=together,
            run_id=run.run_id,
            exit_code=int(code),
        )
    return code


def _over_boots(settings: Settings, job: BenchJob, run: Run, regime: Regime, boots: int, view: UpView) -> Iterator[Any]:
    """Yield the events of every boot; the first is the running one."""
    for number in range(boots):
        if number:
            job = _next_boot(settings, job, view)
        yield from bench_regime(job, run, regime)


def _next_boot(settings: Settings, job: BenchJob, view: UpView) -> BenchJob:
    """Start the measured server anew, show how, and return the job of its new life."""
    steps = reboot(settings, *pick_server(settings, job.target.server_id))
    while True:
        try:
            view.show(next(steps))
        except StopIteration as done:
            _, record = done.value
            return replace(
                job, target=target_of(record, settings), boot_id=record.server_id, used=frozenset(), earlier=()
            )


def run_ab(catalog: Catalog, settings: Settings, options: dict[str, Any], *, as_json: bool) -> int:
    """Measure two tiers against each other, boots in the order A B B A."""
    regime = chosen_regime(options)
    plan = AbPlan(
        a=options["ab"][0],
        b=options["ab"][1],
        boots=options["boots"] or (1 if options["beside"] else 3),
        margin=options["margin"],
        allowed=frozenset(options["allowed"]),
        overrides=options["overrides"],
        timeout_s=options["timeout_s"],
        settle_s=options["settle_s"],
        beside=options["beside"],
    )
    endpoints = plan.beside and are_urls(plan)
    found = () if endpoints else require_comparable(catalog, settings, plan)
    verdicts: list[ClassVerdict] = []
    rig = detect_rig()
    run = create_run(
        settings.runs_dir,
        "bench --ab --beside" if plan.beside else "bench --ab",
        url=None,
        slug=f"{plan.a} against {plan.b}",
        driver_version=rig.driver_version,
        rig=rig_record(rig),
        seeds={"prompts": regime.seed or 0},
        overrides=plan.overrides,
    )
    with Screen(quiet=as_json) as screen, run, ExitStack() as stack:
        form = ", both at once, requests in turn" if plan.beside else ""
        screen.text(f"{regime.name}: A {plan.a} against B {plan.b}, boots an arm: {plan.boots}{form}")
        unknown = "not known: they are endpoints" if endpoints else "in nothing"
        screen.line("differ", "; ".join(str(item) for item in found) or unknown)
        view, proof = UpView(screen), ProofView(screen)
        steps = (bench_beside if plan.beside else bench_ab)(catalog, settings, run, regime, plan)
        for event in stack.enter_context(closing_events(steps)):
            if isinstance(event, ClassVerdict):
                verdicts.append(event)
                screen.line(event.prompt_class.value[:8], verdict_words(event))
            elif isinstance(event, SettleDone):
                proof.show(event)
            else:
                if isinstance(event, Began):  # a boot's stages are shown by themselves
                    view = UpView(screen)
                view.show(event)  # type: ignore[arg-type]  # prefill is off here, and no other proof event comes
        code = ExitCode.DONE if settled(verdicts) else ExitCode.INCONCLUSIVE
        run.finish("complete", int(code), "; ".join(f"{v.prompt_class.value} {v.comparison.verdict}" for v in verdicts))
        screen.line("run", run.run_id)
    if as_json:
        write_json(regime=regime.name, verdicts=verdicts, run_id=run.run_id, exit_code=int(code))
    return code


def verdict_words(row: ClassVerdict) -> str:
    """Return a verdict in one line: 'B is faster: 1.12 of A (1.08 to 1.16); reason'."""
    found = row.comparison
    interval = f" ({found.low:.3f} to {found.high:.3f})" if found.low is not None and found.high is not None else ""
    paired = row.paired
    pairs = ""
    if paired and paired.low is not None and paired.high is not None:
        pairs = f"; prompt by prompt {paired.mean:.3f} ({paired.low:.3f} to {paired.high:.3f}, n={paired.n})"
    return f"B is {found.verdict.value}: {found.ratio:.3f} of A{interval}; {found.reason}{pairs}"
