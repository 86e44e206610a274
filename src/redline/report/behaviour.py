"""What a server did over time and at depth, from the payloads of its runs; empty where there are no such records.

The context ladder names its numbers by depth: `prefill_tok_s_at_2048`, `needle_at_2048_50` (the code at half of it was
found again: 1, or not: 0). A check with `context_tokens` and `ttft_s` or `decode_tok_s` is a point by itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from redline.bench.boots import boot_id_of, boots_of
from redline.bench.prefill import PrefillSample
from redline.bench.quick import BenchSample
from redline.checks.check import CheckResult, CheckStatus
from redline.checks.ramp import RampTurn
from redline.checks.soak import SoakTurn
from redline.checks.stages import StagesPlan
from redline.launch.outcome import ServerMemory
from redline.record.reading import RunRecord
from redline.report.model import AcceptancePoint, ContextPoint, Drafting, MemoryPoint, NeedleCell, PositionRate

# Prompts of nearly one length say nothing about the effect of length.
_CONTEXT_RANGE: Final = 4
_PREFILL: Final = re.compile(r"prefill_tok_s_at_(\d+)")
_NEEDLE: Final = re.compile(r"needle_at_(\d+)_(\d+)")
FRESH, CONVERSATION, REQUESTS = "a fresh prompt", "a conversation", "benchmark requests"


@dataclass(frozen=True, slots=True)
class _Drafted:
    """One request of any kind, as far as drafting goes."""

    boot: str
    label: str
    tokens: int
    drafts: int
    draft_tokens: int
    accepted: int


def drafting(records: Sequence[RunRecord]) -> Drafting | None:
    """Return what drafting brought over all measured requests, or None where nothing was drafted or counted.

    Over time stands the longer series of benchmark and soak: a soak is made to show whether a drafter tires.
    """
    bench = [found for boot in boots_of(records) for found in _bench_drafts(boot.boot_id, boot.samples)]
    soak = [found for record in records for found in _soak_drafts(record)]
    used = [found for found in (*bench, *soak) if found.drafts]
    drafts = sum(found.drafts for found in used)
    if not drafts:
        return None
    accepted = sum(found.accepted for found in used)
    return Drafting(
        mean_length=1 + accepted / drafts,
        accepted=accepted,
        drafted=sum(found.draft_tokens for found in used),
        by_position=_by_position([sample for record in records for sample in record.payloads(BenchSample)]),
        over_time=tuple(_over_time(max((bench, soak), key=len))),
    )


def _bench_drafts(boot: str, samples: Sequence[BenchSample]) -> Iterator[_Drafted]:
    for one in samples:
        counts = (one.completion_tokens or 0, one.drafts or 0, one.draft_tokens or 0, one.accepted_tokens or 0)
        yield _Drafted(boot, str(one.prompt_class), *counts)


def _soak_drafts(record: RunRecord) -> Iterator[_Drafted]:
    boot = boot_id_of(record)
    for turn in record.payloads(SoakTurn):
        counts = (turn.completion_tokens or 0, turn.drafts or 0, turn.draft_tokens or 0, turn.accepted_tokens or 0)
        yield _Drafted(boot, turn.shape, *counts)


def _by_position(samples: Sequence[BenchSample]) -> tuple[PositionRate, ...]:
    counted = [sample for sample in samples if sample.drafts and sample.accepted_by_position]
    drafts = sum(sample.drafts or 0 for sample in counted)
    width = max((len(sample.accepted_by_position or ()) for sample in counted), default=0)
    totals = [sum(sum((sample.accepted_by_position or ())[at : at + 1]) for sample in counted) for at in range(width)]
    return tuple(PositionRate(position=at + 1, accepted=total, drafts=drafts) for at, total in enumerate(totals))


def _over_time(series: Sequence[_Drafted]) -> Iterator[AcceptancePoint]:
    boots = list(dict.fromkeys(found.boot for found in series))
    generated = dict.fromkeys(boots, 0)
    for found in series:
        if found.drafts:
            yield AcceptancePoint(
                boot=boots.index(found.boot),
                prompt_class=found.label,
                tokens_before=generated[found.boot],
                mean_length=1 + found.accepted / found.drafts,
            )
        generated[found.boot] += found.tokens


def context_points(records: Sequence[RunRecord]) -> tuple[ContextPoint, ...]:
    """Return first token and decode rate by size of the prompt, smallest first; nothing where all are of one size.

    What was made for this (ladders, long prompts, conversations) stands alone; requests of a benchmark stand in.
    """
    points = [point for record in records for point in _made_for_depth(record)]
    if not points:
        points = [
            _point(REQUESTS, sample.prompt_tokens, sample.ttft_s, sample.decode_tok_s)
            for record in records
            for sample in record.payloads(BenchSample)
            if sample.prompt_tokens and sample.error is None
        ]
    sizes = [point.context_tokens for point in points]
    if not sizes or max(sizes) < _CONTEXT_RANGE * min(sizes):
        return ()
    return tuple(sorted(points, key=lambda point: (point.series, point.context_tokens)))


def _made_for_depth(record: RunRecord) -> Iterator[ContextPoint]:
    for result in record.payloads(CheckResult):
        yield from _from_metrics(result)
    for long in record.payloads(PrefillSample):
        if long.prompt_tokens and long.error is None and long.unseen is not False:
            yield _point(FRESH, long.prompt_tokens, long.ttft_s, None)
    for turn in record.payloads(RampTurn):
        if turn.prompt_tokens and turn.error is None:
            yield _point(CONVERSATION, turn.prompt_tokens, turn.ttft_s, turn.decode_tok_s)


def _from_metrics(result: CheckResult) -> Iterator[ContextPoint]:
    metrics = result.metrics
    if metrics.get("context_tokens", 0) > 0 and {"ttft_s", "decode_tok_s"} & metrics.keys():
        yield _point(FRESH, round(metrics["context_tokens"]), metrics.get("ttft_s"), metrics.get("decode_tok_s"))
    if metrics.get("depth_tokens", 0) > 0 and "deep_tok_s" in metrics:
        yield _point(FRESH, round(metrics["depth_tokens"]), None, metrics["deep_tok_s"])
    for name, value in metrics.items():
        found = _PREFILL.fullmatch(name)
        if found and value > 0 and int(found[1]):
            yield _point(FRESH, int(found[1]), int(found[1]) / value, None)


def _point(series: str, size: int, ttft_s: float | None, decode_tok_s: float | None) -> ContextPoint:
    return ContextPoint(series=series, context_tokens=size, ttft_s=ttft_s, decode_tok_s=decode_tok_s)


def needle_cells(records: Iterable[RunRecord]) -> tuple[NeedleCell, ...]:
    """Return where in prompts of which size a code was found again; a cell asked twice shows the worse verdict."""
    worst: dict[tuple[int, float], CheckStatus] = {}
    for record in records:
        for result in record.payloads(CheckResult):
            for key, status in _needles(result):
                if worst.get(key, CheckStatus.PASS) is CheckStatus.PASS:
                    worst[key] = status
    return tuple(
        NeedleCell(context_tokens=size, position_percent=place, status=status)
        for (size, place), status in sorted(worst.items(), key=lambda item: item[0])
    )


def _needles(result: CheckResult) -> Iterator[tuple[tuple[int, float], CheckStatus]]:
    for name, value in result.metrics.items():
        if found := _NEEDLE.fullmatch(name):
            yield (int(found[1]), float(found[2])), CheckStatus.PASS if value else CheckStatus.FAIL


# What stands for the server's id in readings of one that redline did not start.
UNMANAGED: Final = "unmanaged"


def memory_points(records: Iterable[RunRecord]) -> tuple[MemoryPoint, ...]:
    """Return what a server held over time, from the life of one with the most such readings.

    Times of several runs go together where they are about one life: `mono_ns` counts since the machine started, and no
    server outlives that. A server that redline did not start is one life within a run, and through a report's stages.
    """
    series: dict[str, list[tuple[int, str, int, tuple[int, ...]]]] = {}
    records = tuple(records)
    staged = sum(1 for record in records if record.payloads(StagesPlan)) == 1
    for record in records:
        unmanaged, own = "" if staged else record.run_id, boot_id_of(record)
        for event, held in record.of(ServerMemory):
            key = unmanaged if held.server_id == UNMANAGED else held.server_id
            series.setdefault(key, []).append((event.mono_ns, held.phase, held.resident_bytes, held.gpu_bytes))
        for event, turn in record.of(SoakTurn):
            if turn.resident_bytes is not None:
                gpu = () if turn.gpu_bytes is None else (turn.gpu_bytes,)
                key = unmanaged if own.startswith(UNMANAGED) else own
                series.setdefault(key, []).append((event.mono_ns, "soak", turn.resident_bytes, gpu))
    if not series:
        return ()
    most = max(len(readings) for readings in series.values())
    longest = sorted(next(readings for readings in series.values() if len(readings) == most))
    origin = longest[0][0]
    return tuple(
        MemoryPoint(at_s=(at_ns - origin) / 1e9, phase=phase, resident_bytes=resident, gpu_bytes=gpu)
        for at_ns, phase, resident, gpu in longest
    )
