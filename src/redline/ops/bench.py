"""Runs a benchmark against a server and records every sample."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redline.bench.measure import Boot, run_regime, summarise_regime
from redline.bench.prefill import PrefillSample, lengths_that_fit, run_prefill, summarise_prefill
from redline.bench.quick import BenchSample, QuickRegime, run_quick, summarise
from redline.bench.regime import Regime
from redline.bench.settle import settle
from redline.errors import InconclusiveError, RefusedError
from redline.ops.events import Event, Measured, PrefillDone, PrefillMeasured, ProofEvent, SampleDone, SettleDone
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.target import Target
from redline.record.event import payload
from redline.record.reading import read_events, read_manifest
from redline.record.run import Run
from redline.stats.boots import Boot as BootValues
from redline.stats.boots import BootSummary, summarise_boots
from redline.workload.prompts import PromptClass


@payload("bench.boots")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassBoots:
    """Decode rates of one class over several boots of one server."""

    regime: str
    prompt_class: PromptClass
    decode_tok_s: BootSummary


@payload("bench.restarted")
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRestarted:
    """The process that was measured is gone; nothing that another one answered is among the samples."""

    boot_id: str
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchJob:
    """One life of a server to be measured, and what is known of it."""

    target: Target
    boot_id: str
    context_tokens: int | None = None
    used: frozenset[tuple[str, int]] = frozenset()
    thinking_switch: bool = True
    prefill: bool = True
    seed: int = 1
    timeout_s: float = 600.0
    settle_s: float = 0.0  # how long a GPU may be worked until it is warm, before anything is measured
    conditions: Mapping[str, Any] = field(default_factory=dict)
    earlier: tuple[BenchSample, ...] = ()  # of this boot, from a run that was cut off
    earlier_prefill: tuple[PrefillSample, ...] = ()


def bench_quick(target: Target, run: Run, regime: QuickRegime) -> Iterator[Event]:
    """Yield each sample, then the summaries."""
    samples: list[BenchSample] = []
    total = regime.per_class * len(regime.classes)
    with asyncio.Runner() as runner:
        client = Client(target)
        try:
            for sample in drain(runner, run_quick(client, regime)):
                run.append(sample)
                samples.append(sample)
                yield SampleDone(sample=sample, number=len(samples), total=total)
        finally:
            runner.run(client.__aexit__(None, None, None))
    summaries = summarise(samples, regime)
    for summary in summaries:
        run.append(summary)
    yield Measured(summaries=summaries)


def bench_regime(job: BenchJob, run: Run, regime: Regime) -> Iterator[Event | ProofEvent]:
    """Yield each sample, then the summaries. Ctrl-C records the summaries of what there is.

    Raises:
        RefusedError: lookup drafting would measure its own memory of an earlier answer.
        EndpointError: long prompts are asked for and the server counts no tokens.
        InconclusiveError: the server ended meanwhile, or began anew; what it answered before is summed up.
    """
    require_fresh_prompts(job, regime)
    samples, long = list(job.earlier), list(job.earlier_prefill)
    boot = Boot(
        boot_id=job.boot_id,
        used=job.used,
        thinking_switch=job.thinking_switch,
        timeout_s=job.timeout_s,
        earlier=job.earlier,
    )
    total = sum(min(20, len(regime.prompts(kind, job.used))) for kind in regime.classes)
    life = ServerMemory(job.target.url)
    served = life.process()
    run.append(regime)
    for row in (*samples, *long):
        run.append(row)
    try:
        with asyncio.Runner() as runner:
            client = Client(job.target)
            try:
                if job.settle_s > 0:
                    settling = runner.run(settle(client, regime, boot, job.settle_s))
                    run.append(settling)
                    yield SettleDone(settling=settling)
                for sample in drain(runner, run_regime(client, regime, boot)):
                    same = served is None or life.process() == served
                    if same or sample.error:
                        run.append(sample)
                        samples.append(sample)
                    if not same:
                        run.append(ServerRestarted(boot_id=job.boot_id, samples=len(samples)))
                        raise _restarted(len(samples))
                    yield SampleDone(sample=sample, number=len(samples), total=total)
                lengths = lengths_that_fit(regime.prefill_tokens, job.context_tokens) if job.prefill else ()
                if lengths:
                    source = run_prefill(client, regime, job.boot_id, lengths, job.seed, job.timeout_s, len(long))
                    for prompt in drain(runner, source):
                        run.append(prompt)
                        long.append(prompt)
                        yield PrefillDone(sample=prompt, number=len(long), total=regime.prefill_runs * len(lengths))
            finally:
                runner.run(client.__aexit__(None, None, None))
    except (KeyboardInterrupt, SystemExit, GeneratorExit, InconclusiveError):
        _record(run, samples, long, regime)
        raise
    yield from _record(run, samples, long, regime)


def _restarted(samples: int) -> InconclusiveError:
    return InconclusiveError(
        f"The server ended, or was started anew, while it was measured: {samples} requests before that stand in the "
        "run, and nothing after it does.",
        next_step="`redline logs` says why it ended; then measure again.",
    )


def _record(
    run: Run, samples: Sequence[BenchSample], long: Sequence[PrefillSample], regime: Regime
) -> tuple[Event | ProofEvent, ...]:
    summaries, prefill = summarise_regime(samples, regime), summarise_prefill(long)
    for summary in (*summaries, *prefill):
        run.append(summary)
    measured: tuple[Event | ProofEvent, ...] = (Measured(summaries=summaries),)
    return (*measured, PrefillMeasured(summaries=prefill)) if prefill else measured


def over_boots(samples: Sequence[BenchSample], regime: Regime) -> tuple[ClassBoots, ...]:
    """Return each class over the boots that gave it a rate; classes with one boot have no interval."""
    found = []
    for kind in regime.classes:
        boots = boots_of(samples, kind)
        if boots:
            found.append(ClassBoots(regime=regime.name, prompt_class=kind, decode_tok_s=summarise_boots(boots)))
    return tuple(found)


def boots_of(samples: Sequence[BenchSample], kind: PromptClass) -> tuple[BootValues, ...]:
    """Return the decode rates of a class, boot by boot, in the order the boots came."""
    rates: dict[str, list[float]] = {}
    for sample in samples:
        if sample.prompt_class is kind and sample.decode_tok_s is not None:
            rates.setdefault(sample.boot_id or "unknown", []).append(sample.decode_tok_s)
    return tuple(BootValues(boot_id=name, values=tuple(values)) for name, values in rates.items())


def require_fresh_prompts(job: BenchJob, regime: Regime) -> None:
    """Refuse to measure a lookup drafter on prompts whose answers it has seen.

    Raises:
        RefusedError: the regime repeats its prompt, or too few new prompts are left in this server's life.
    """
    if "lookup" not in str(_value(job.conditions, "drafter") or ""):
        return
    if regime.repeats:
        raise RefusedError(
            f"{regime.name} sends one prompt again and again, and lookup drafting remembers earlier answers.",
            next_step="Measure this tier with `redline bench` alone, which sends no prompt twice.",
        )
    for kind in regime.classes:
        if len(regime.prompts(kind, job.used)) < regime.runs:
            raise RefusedError(
                f"This server has seen nearly all {kind.value} prompts, and lookup drafting remembers its answers.",
                next_step="Start it anew: `redline down`, then `redline up --no-measure`; or take other classes.",
            )


def used_prompts(runs_dir: Path, server_id: str | None) -> frozenset[tuple[str, int]]:
    """Return the class and index of every prompt that earlier runs sent to this very server."""
    found: set[tuple[str, int]] = set()
    for folder in sorted(runs_dir.iterdir()) if server_id and runs_dir.is_dir() else ():
        try:
            same = read_manifest(folder).server_id == server_id
        except ValueError:
            continue
        # `up` opens its run before the server has a name, and says it in its first event.
        for event in read_events(folder):
            if event.kind == "server.started":
                same = same or event.payload["server_id"] == server_id
            elif event.kind == "bench.sample" and event.payload.get("boot_id") in (
                *((None,) if same else ()),
                server_id,
            ):
                # A sample names its boot; those of `up` and `--quick` are of the server that the run names.
                found.add((event.payload["prompt_class"], event.payload["prompt_index"]))
    return frozenset(found)


def _value(conditions: Mapping[str, Any], name: str) -> Any:
    row = (conditions.get("resolved") or {}).get(name)
    return row.get("value") if isinstance(row, Mapping) else None
