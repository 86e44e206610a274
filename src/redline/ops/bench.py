"""Runs a benchmark against a server and records every sample."""

import asyncio
from collections.abc import Iterator

from redline.bench.quick import BenchSample, QuickRegime, run_quick, summarise
from redline.ops.events import Event, Measured, SampleDone
from redline.ops.stream import drain
from redline.probe.client import Client
from redline.probe.target import Target
from redline.record.run import Run


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
