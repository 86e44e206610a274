"""Samples by the boot they were measured on: another boot of the same tier differs more than another request does.

A server that redline started is a boot. An endpoint it did not start is one boot, however many runs: nothing proves
that it was restarted between them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from redline.bench.quick import BenchSample
from redline.launch.outcome import ServerStarted
from redline.record.reading import RunRecord

# Name in a report -> how a sample gives the value; for times less is better.
METRICS: Final[dict[str, Callable[[BenchSample], float | None]]] = {
    "decode_tok_s": lambda sample: sample.decode_tok_s,
    "prefill_tok_s": lambda sample: sample.prefill_tok_s,
    "ttft_s": lambda sample: sample.ttft_s,
}
LESS_IS_BETTER: Final = frozenset({"ttft_s"})


@dataclass(frozen=True, slots=True)
class MeasuredBoot:
    """The samples of one boot, in the order they were taken."""

    boot_id: str
    samples: tuple[BenchSample, ...]


def boot_id_of(record: RunRecord) -> str:
    """Return the name of the boot that a run was made on."""
    started = record.payloads(ServerStarted)
    server = record.manifest.server_id or (started[0].server_id if started else None)
    return server or f"unmanaged {record.manifest.url or record.run_id}"


def boots_of(records: Iterable[RunRecord]) -> tuple[MeasuredBoot, ...]:
    """Return the boots behind runs with their samples, in order of first appearance; those without are absent."""
    by_boot: dict[str, list[BenchSample]] = {}
    for record in records:
        own = boot_id_of(record)
        for sample in record.payloads(BenchSample):
            # A run over several boots names the boot with each sample; "unmanaged" is no name.
            named = sample.boot_id if sample.boot_id not in (None, "unmanaged") else None
            by_boot.setdefault(named or own, []).append(sample)
    return tuple(MeasuredBoot(boot_id, tuple(samples)) for boot_id, samples in by_boot.items())


def values_by_prompt(samples: Sequence[BenchSample], metric: str, regime: str, prompt_class: str) -> dict[int, float]:
    """Return prompt index -> value of one metric; a prompt that was asked more than once gives its geometric mean."""
    read = METRICS[metric]
    found: dict[int, list[float]] = {}
    for sample in samples:
        value = read(sample)
        if sample.regime == regime and sample.prompt_class == prompt_class and value is not None and value > 0:
            found.setdefault(sample.prompt_index, []).append(value)
    return {index: math.exp(fmean(map(math.log, values))) for index, values in found.items()}
