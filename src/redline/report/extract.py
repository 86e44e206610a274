"""From the payloads of runs to the parts of a report: one function a part, empty where there are no such records.

A new kind of payload reaches the report by one more function here. Checks carry their numbers in `metrics`: one with
`context_tokens` is a point on the curves against context, and with `position_percent` too a cell of the needle grid.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from redline.bench.boots import METRICS, MeasuredBoot, boots_of, values_by_prompt
from redline.bench.quick import BenchSample
from redline.checks.check import CheckResult, CheckStatus
from redline.launch.outcome import ServerFailed, ServerMemory, ServerStarted
from redline.record.reading import RunRecord
from redline.report.model import (
    AcceptancePoint,
    BootFact,
    CheckRow,
    ClassSpeed,
    ContextPoint,
    Drafting,
    MemoryPoint,
    NeedleCell,
    PositionRate,
    RunFact,
    SamplePoint,
)
from redline.report.words import parse_time
from redline.stats.compare import MIN_BOOTS
from redline.stats.interval import Estimate, estimate_mean

# Prompts of nearly one length say nothing about the effect of length.
_CONTEXT_RANGE: Final = 4


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
        for result in record.payloads(CheckResult):
            asked.setdefault(result.check_id, []).append((record.run_id, result))
    return tuple(_check_row(results) for results in asked.values())


def _check_row(results: Sequence[tuple[str, CheckResult]]) -> CheckRow:
    run_id, last = results[-1]
    return CheckRow(
        check_id=last.check_id,
        title=last.title,
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
    boots = boots_of(records)
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


def drafting(records: Iterable[RunRecord]) -> Drafting | None:
    """Return what drafting brought over all measured requests, or None where nothing was drafted or counted."""
    boots = boots_of(records)
    samples = [sample for boot in boots for sample in boot.samples if sample.drafts]
    drafts = sum(sample.drafts or 0 for sample in samples)
    if not drafts:
        return None
    accepted = sum(sample.accepted_tokens or 0 for sample in samples)
    return Drafting(
        mean_length=1 + accepted / drafts,
        accepted=accepted,
        drafted=sum(sample.draft_tokens or 0 for sample in samples),
        by_position=_by_position(samples),
        over_time=tuple(point for number, boot in enumerate(boots) for point in _over_time(number, boot)),
    )


def _by_position(samples: Sequence[BenchSample]) -> tuple[PositionRate, ...]:
    counted = [sample for sample in samples if sample.accepted_by_position]
    drafts = sum(sample.drafts or 0 for sample in counted)
    width = max((len(sample.accepted_by_position or ()) for sample in counted), default=0)
    totals = [sum(sum((sample.accepted_by_position or ())[at : at + 1]) for sample in counted) for at in range(width)]
    return tuple(PositionRate(position=at + 1, accepted=total, drafts=drafts) for at, total in enumerate(totals))


def _over_time(number: int, boot: MeasuredBoot) -> Iterable[AcceptancePoint]:
    generated = 0
    for sample in boot.samples:
        if sample.drafts:
            yield AcceptancePoint(
                boot=number,
                prompt_class=str(sample.prompt_class),
                tokens_before=generated,
                mean_length=1 + (sample.accepted_tokens or 0) / sample.drafts,
            )
        generated += sample.completion_tokens or 0


def context_points(records: Iterable[RunRecord]) -> tuple[ContextPoint, ...]:
    """Return first token and decode rate by size of the prompt, smallest first.

    Checks that climb a ladder of sizes are made for this; the requests of a benchmark stand in where there are none.
    """
    records = list(records)
    points = [
        ContextPoint(
            context_tokens=round(result.metrics["context_tokens"]),
            ttft_s=result.metrics.get("ttft_s"),
            decode_tok_s=result.metrics.get("decode_tok_s"),
        )
        for record in records
        for result in record.payloads(CheckResult)
        if result.metrics.get("context_tokens", 0) > 0 and {"ttft_s", "decode_tok_s"} & result.metrics.keys()
    ] or [
        ContextPoint(context_tokens=sample.prompt_tokens, ttft_s=sample.ttft_s, decode_tok_s=sample.decode_tok_s)
        for record in records
        for sample in record.payloads(BenchSample)
        if sample.prompt_tokens and sample.error is None
    ]
    sizes = [point.context_tokens for point in points]
    if not sizes or max(sizes) < _CONTEXT_RANGE * min(sizes):
        return ()
    return tuple(sorted(points, key=lambda point: point.context_tokens))


def needle_cells(records: Iterable[RunRecord]) -> tuple[NeedleCell, ...]:
    """Return where in prompts of which size a fact was found again; a cell asked twice shows the worse verdict."""
    worst: dict[tuple[int, float], CheckStatus] = {}
    for record in records:
        for result in record.payloads(CheckResult):
            size, place = result.metrics.get("context_tokens"), result.metrics.get("position_percent")
            if not size or place is None or result.status is CheckStatus.SKIP:
                continue
            key = (round(size), place)
            if worst.get(key, CheckStatus.PASS) is CheckStatus.PASS:
                worst[key] = result.status
    return tuple(
        NeedleCell(context_tokens=size, position_percent=place, status=status)
        for (size, place), status in sorted(worst.items(), key=lambda item: item[0])
    )


def memory_points(records: Iterable[RunRecord]) -> tuple[MemoryPoint, ...]:
    """Return what the server held over time, on the boot with the most such records."""
    by_boot: dict[str, list[tuple[int, ServerMemory]]] = {}
    for record in records:
        for event, held in record.of(ServerMemory):
            by_boot.setdefault(held.server_id, []).append((event.mono_ns, held))
    if not by_boot:
        return ()
    series = max(by_boot.values(), key=len)
    origin = series[0][0]
    return tuple(
        MemoryPoint(
            at_s=(at_ns - origin) / 1e9, phase=held.phase, resident_bytes=held.resident_bytes, gpu_bytes=held.gpu_bytes
        )
        for at_ns, held in series
    )
