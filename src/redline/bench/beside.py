"""Two servers at once, request by request in turn: whatever slows the machine for a minute slows both alike.

Each prompt goes to A then B, the next one to B then A. Only one request is under way at a time. A class ends when the
ratio's interval is as narrow as the regime asks, or its prompts are used up.
"""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from statistics import fmean
from typing import Final

from redline.bench.measure import Boot, measure_one, request_for
from redline.bench.quick import BenchSample
from redline.bench.regime import Regime
from redline.probe.client import Client
from redline.stats.interval import Estimate, estimate_ratio
from redline.workload.prompts import Prompt, PromptClass

ARMS: Final = ("A", "B")
_LEAST: Final = 5


async def run_beside(
    clients: Mapping[str, Client], regime: Regime, boots: Mapping[str, Boot]
) -> AsyncIterator[tuple[str, BenchSample]]:
    """Yield each measured request with its arm."""
    warm = Prompt(PromptClass.CHAT, -1, "Say good morning in one short sentence.")
    for arm in ARMS:
        await clients[arm].chat(request_for(regime, boots[arm], warm, 16), timeout_s=boots[arm].timeout_s)
    queues = {kind: list(regime.prompts(kind)) for kind in regime.classes}
    samples: dict[str, list[BenchSample]] = {arm: [] for arm in ARMS}
    turn, open_classes = 0, list(regime.classes)
    while open_classes:
        for kind in tuple(open_classes):
            if not queues[kind] or _enough(samples, kind, regime):
                open_classes.remove(kind)
                continue
            prompt = queues[kind].pop(0)
            for arm in ARMS if turn % 2 == 0 else ARMS[::-1]:
                sample = await measure_one(clients[arm], regime, boots[arm], prompt)
                samples[arm].append(sample)
                yield arm, sample
            turn += 1


def _enough(samples: Mapping[str, Sequence[BenchSample]], kind: PromptClass, regime: Regime) -> bool:
    asked = sum(sample.prompt_class is kind for sample in samples["A"])
    if regime.width is None:
        return asked >= regime.runs
    ratio = paired_ratio(samples["A"], samples["B"], kind)
    narrow = ratio is not None and ratio.half_width is not None and ratio.half_width <= regime.width * ratio.mean
    return asked >= _LEAST and narrow


def paired_ratio(a: Sequence[BenchSample], b: Sequence[BenchSample], kind: PromptClass) -> Estimate | None:
    """Return B's decode rate over A's by the prompts that both answered; None below two of them."""
    rates = [_by_prompt(samples, kind) for samples in (a, b)]
    common = sorted(rates[0].keys() & rates[1].keys())
    if len(common) < 2:
        return None
    return estimate_ratio([rates[1][index] for index in common], [rates[0][index] for index in common])


def _by_prompt(samples: Sequence[BenchSample], kind: PromptClass) -> dict[int, float]:
    """Return prompt -> rate; the geometric mean where several boots answered it."""
    logs: dict[int, list[float]] = {}
    for sample in samples:
        if sample.prompt_class is kind and sample.decode_tok_s:
            logs.setdefault(sample.prompt_index, []).append(math.log(sample.decode_tok_s))
    return {index: math.exp(fmean(values)) for index, values in logs.items()}
