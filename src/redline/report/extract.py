"""From the payloads of runs to the parts of a report: one function a part, empty where there are no such records.

What was run, how it booted, what was checked and how fast it was; `report.behaviour` has what it did over time and
at depth. A new kind of payload reaches the report by one more function in either.
"""

from collections.abc import Iterable, Iterator, Sequence

from redline.bench.arms import ClassVerdict
from redline.bench.boots import METRICS, MeasuredBoot, boots_of, values_by_prompt
from redline.bench.concurrency import ConcurrencySummary
from redline.bench.prefill import PrefillSummary
from redline.checks.check import CheckResult, CheckStatus
from redline.checks.ramp import RampSummary
from redline.checks.soak_verdict import SoakSummary
from redline.checks.stages import StageBegan, StageEnded, StagesPlan, StageState
from redline.launch.outcome import ServerFailed, ServerStarted
from redline.record.reading import RunRecord
from redline.report.model import (
    ArmVerdict,
    BootFact,
    CheckRow,
    ClassSpeed,
    PrefillRow,
    RunFact,
    SamplePoint,
    StageRow,
    StreamLevel,
)
from redline.report.words import parse_time
from redline.stats.compare import MIN_BOOTS
from redline.stats.interval import Estimate, estimate_mean


def run_facts(records: Iterable[RunRecord]) -> tuple[RunFact, ...]:
    """Return what ran, in the order it started."""
    return tuple(
        RunFact(
            run_id=record.run_id,
            command=record.manifest.command,
            started_at=record.manifest.started_at,
            duration_s=_duration_s(record),
            outcome=record.outcome,
            summary=record.finished.summary if record.finished else "",
            problems=record.problems,
        )
        for record in records
    )


def _duration_s(record: RunRecord) -> float | None:
    if not record.events:
        return None
    begin, end = parse_time(record.manifest.started_at), parse_time(record.events[-1].time)
    return max(0.0, (end - begin).total_seconds()) if begin and end else None


def boot_facts(records: Iterable[RunRecord]) -> tuple[BootFact, ...]:
    """Return the starts of servers that runs recorded, failed ones included."""
    found: list[BootFact] = []
    for record in records:
        slug = record.manifest.slug or record.manifest.url or "unknown"
        for event, started in record.of(ServerStarted):
            found.append(
                BootFact(
                    server_id=started.server_id,
                    slug=slug,
                    when=event.time,
                    state="ready",
                    ready_s=started.ready_s,
                    memory_bytes=started.memory_bytes or None,
                    stages=started.stages,
                )
            )
        for event, failed in record.of(ServerFailed):
            found.append(failed_boot(failed, slug, event.time))
    return tuple(found)


def failed_boot(failed: ServerFailed, slug: str, when: str) -> BootFact:
    """Return a failed start as the report shows it."""
    return BootFact(
        server_id=failed.server_id,
        slug=slug,
        when=when,
        state="failed",
        stages=failed.stages,
        reason=failed.reason,
        cause=failed.cause,
        evidence=failed.evidence,
        remedies=failed.remedies,
        log_tail=failed.log_tail,
    )


def check_rows(records: Iterable[RunRecord]) -> tuple[CheckRow, ...]:
    """Return the last verdict of each check, in the order they were first asked."""
    asked: dict[str, list[tuple[str, CheckResult]]] = {}
    for record in records:
        for result in _results(record):
            asked.setdefault(result.check_id, []).append((record.run_id, result))
    return tuple(_check_row(results) for results in asked.values())


def _results(record: RunRecord) -> tuple[CheckResult, ...]:
    """Return a run's verdicts, those that stand in a summary included."""
    found = list(record.payloads(CheckResult))
    for soak in record.payloads(SoakSummary):
        found += soak.results
    for ramp in record.payloads(RampSummary):
        found += ramp.results
    for streams in record.payloads(ConcurrencySummary):
        found += streams.results
    return tuple(found)


def _check_row(results: Sequence[tuple[str, CheckResult]]) -> CheckRow:
    run_id, last = results[-1]
    return CheckRow(
        check_id=last.check_id,
        title=last.title if last.title != last.check_id else last.check_id.replace(".", " ").replace("_", " "),
        status=last.status,
        message=last.message,
        failure_class=last.failure_class,
        skip_reason=last.skip_reason,
        evidence=last.evidence,
        duration_s=last.duration_s,
        run_id=run_id,
        asked=sum(1 for _, result in results if result.status is not CheckStatus.SKIP),
        passed=sum(1 for _, result in results if result.status is CheckStatus.PASS),
    )


def class_speeds(records: Iterable[RunRecord]) -> tuple[ClassSpeed, ...]:
    """Return one row a regime and prompt class, in the order they were first measured."""
    return speeds_of(boots_of(records))


def speeds_of(boots: Sequence[MeasuredBoot]) -> tuple[ClassSpeed, ...]:
    """Return what boots measured, one row a regime and prompt class; all that a submission's numbers rest on."""
    keys = dict.fromkeys((sample.regime, str(sample.prompt_class)) for boot in boots for sample in boot.samples)
    return tuple(_class_speed(boots, regime, prompt_class) for regime, prompt_class in keys)


def _class_speed(boots: Sequence[MeasuredBoot], regime: str, prompt_class: str) -> ClassSpeed:
    chosen = [
        (number, sample)
        for number, boot in enumerate(boots)
        for sample in boot.samples
        if sample.regime == regime and sample.prompt_class == prompt_class
    ]
    used = sorted({number for number, _ in chosen})
    over_boots = len(used) >= MIN_BOOTS  # from so many on their means carry the interval, below the requests do
    estimates = {
        metric: _estimate([boots[number] for number in used], metric, regime, prompt_class, over_boots=over_boots)
        for metric in METRICS
    }
    drafts = sum(sample.drafts or 0 for _, sample in chosen)
    accepted = sum(sample.accepted_tokens or 0 for _, sample in chosen)
    return ClassSpeed(
        regime=regime,
        prompt_class=prompt_class,
        boots=len(used),
        requests=len(chosen),
        failed=sum(1 for _, sample in chosen if sample.decode_tok_s is None),
        over_boots=over_boots,
        decode_tok_s=estimates["decode_tok_s"],
        prefill_tok_s=estimates["prefill_tok_s"],
        ttft_s=estimates["ttft_s"],
        acceptance_length=1 + accepted / drafts if drafts else None,
        samples=tuple(
            SamplePoint(boot=number, decode_tok_s=sample.decode_tok_s, ttft_s=sample.ttft_s)
            for number, sample in chosen
        ),
    )


def _estimate(
    boots: Sequence[MeasuredBoot], metric: str, regime: str, prompt_class: str, *, over_boots: bool
) -> Estimate | None:
    per_boot = [list(values_by_prompt(boot.samples, metric, regime, prompt_class).values()) for boot in boots]
    measured = [values for values in per_boot if values]
    if not measured:
        return None
    if over_boots:
        return estimate_mean([sum(values) / len(values) for values in measured])
    return estimate_mean([value for values in measured for value in values])


def prefill_rows(records: Iterable[RunRecord]) -> tuple[PrefillRow, ...]:
    """Return how fast long prompts were read, by the last run that measured a length, shortest first."""
    last = {
        (summary.regime, summary.target_tokens): summary
        for record in records
        for summary in record.payloads(PrefillSummary)
    }
    return tuple(
        PrefillRow(
            regime=summary.regime,
            target_tokens=summary.target_tokens,
            prefill_tok_s=summary.prefill_tok_s,
            ttft_s=summary.ttft_s,
            failed=summary.failed,
        )
        for _, summary in sorted(last.items(), key=lambda item: item[0])
    )


def stream_levels(records: Iterable[RunRecord]) -> tuple[StreamLevel, ...]:
    """Return what requests side by side made, by the last run that measured it."""
    summaries = [summary for record in records for summary in record.payloads(ConcurrencySummary)]
    return tuple(
        StreamLevel(
            streams=level.streams,
            aggregate_tok_s=level.aggregate_tok_s,
            per_stream_tok_s=level.per_stream_tok_s,
            ttft_s=level.ttft_s,
            errors=level.errors,
        )
        for level in (summaries[-1].levels if summaries else ())
    )


def endurance(records: Iterable[RunRecord]) -> tuple[str, ...]:
    """Return what soaks observed, each with the bound on what was not."""
    return tuple(
        summary.statement for record in records for summary in record.payloads(SoakSummary) if summary.statement
    )


def stage_rows(records: Iterable[RunRecord]) -> tuple[StageRow, ...]:
    """Return the stages of the last whole report of each subject; one that a kill cut short is said to be so."""
    last = {
        record.manifest.slug or record.manifest.url or "unknown": record
        for record in records
        if record.payloads(StagesPlan)
    }
    return tuple(row for subject, record in last.items() for row in _stages_of(subject, record))


def _stages_of(subject: str, last: RunRecord) -> Iterator[StageRow]:
    (plan, *_) = last.payloads(StagesPlan)
    ended = {row.stage: row for row in last.payloads(StageEnded)}
    began = {row.stage: row.run_id for row in last.payloads(StageBegan)}
    for stage in plan.stages:
        cut = StageState.INTERRUPTED if stage in began and not last.writing else StageState.NOT_RUN
        words = "under way" if last.writing else "cut off" if stage in began else "the report was cut off before it"
        row = ended.get(stage) or StageEnded(stage=stage, state=cut, reason=words, run_id=began.get(stage))
        yield StageRow(
            subject=subject,
            stage=stage.value,
            state=row.state,
            reason=row.reason,
            seconds=row.seconds,
            run_id=row.run_id,
            earlier=row.earlier,
        )


def arm_verdicts(records: Iterable[RunRecord]) -> tuple[ArmVerdict, ...]:
    """Return the verdicts of runs that measured two tiers in turns."""
    return tuple(
        ArmVerdict(
            run_id=record.run_id,
            regime=found.regime,
            prompt_class=str(found.prompt_class),
            a=found.a,
            b=found.b,
            ratio=found.comparison.ratio,
            low=found.comparison.low,
            high=found.comparison.high,
            boots_a=found.comparison.boots_a,
            boots_b=found.comparison.boots_b,
            verdict=found.comparison.verdict.value,
            reason=found.comparison.reason,
        )
        for record in records
        for found in record.payloads(ClassVerdict)
    )
