"""Measures a server by a regime: requests one at a time, classes in turn so that drift hits all of them.

A class is measured until its interval is as narrow as asked, or its prompts are used up.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from redline.bench.quick import BenchSample, ClassSummary, sample_of
from redline.bench.regime import Regime
from redline.probe.client import Client
from redline.probe.definitions import wall_tok_s
from redline.probe.exchange import ChatRequest
from redline.probe.gpu import GpuSampler
from redline.stats.interval import Estimate, estimate_mean
from redline.stats.stopping import StoppingRule, StopState
from redline.workload.prompts import Prompt, PromptClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """Which life of the server is measured, what it has seen before, and whether it knows a switch for thinking."""

    boot_id: str
    used: frozenset[tuple[str, int]] = frozenset()
    thinking_switch: bool = True
    timeout_s: float = 600.0
    earlier: tuple[BenchSample, ...] = ()  # of this boot, measured before the run was cut off


async def run_regime(client: Client, regime: Regime, boot: Boot) -> AsyncIterator[BenchSample]:
    """Yield each measured request; warm requests are sent and not yielded."""
    asked = frozenset((sample.prompt_class.value, sample.prompt_index) for sample in boot.earlier)
    queues = {kind: list(regime.prompts(kind, boot.used | asked)) for kind in regime.classes}
    seen = {kind: sum(sample.prompt_class is kind for sample in boot.earlier) for kind in regime.classes}
    rules = {kind: regime.rule(len(queue) + seen[kind] - _warm(regime)) for kind, queue in queues.items()}
    rates, runs = _known(regime, boot.earlier)
    if regime.repeats:  # the canonical order: a class is warmed and measured before the next one
        for kind, queue in queues.items():
            for number, prompt in enumerate(queue):
                if runs[kind] == regime.runs or regime.warm <= number < regime.warm + runs[kind]:
                    continue
                sample = await measure_one(client, regime, boot, prompt)
                if number >= regime.warm:
                    yield sample
        return
    for kind in regime.classes[:1]:
        warm = Prompt(kind, -1, "Say good morning in one short sentence.")
        await client.chat(request_for(regime, boot, warm, max_tokens=16), timeout_s=boot.timeout_s)
    open_classes = list(regime.classes)
    while open_classes:
        for kind in tuple(open_classes):
            rule = rules[kind]
            if not queues[kind] or (boot.earlier and _enough(rule, rates[kind], runs[kind], regime)):
                open_classes.remove(kind)
                continue
            sample = await measure_one(client, regime, boot, queues[kind].pop(0))
            runs[kind] += 1
            if sample.decode_tok_s is not None:
                rates[kind].append(sample.decode_tok_s)
            yield sample
            if _enough(rule, rates[kind], runs[kind], regime):
                open_classes.remove(kind)


def _warm(regime: Regime) -> int:
    return regime.warm if regime.repeats else 0


def _known(
    regime: Regime, earlier: Sequence[BenchSample]
) -> tuple[dict[PromptClass, list[float]], dict[PromptClass, int]]:
    """Return the rates and the number of runs of each class that were measured before."""
    own = {kind: [sample for sample in earlier if sample.prompt_class is kind] for kind in regime.classes}
    rates = {kind: [row.decode_tok_s for row in rows if row.decode_tok_s is not None] for kind, rows in own.items()}
    return rates, {kind: len(rows) for kind, rows in own.items()}


def _enough(rule: StoppingRule | None, rates: Sequence[float], runs: int, regime: Regime) -> bool:
    return runs >= regime.runs if rule is None else rule.decide(rates).state is not StopState.GO_ON


async def measure_one(client: Client, regime: Regime, boot: Boot, prompt: Prompt) -> BenchSample:
    """Have one prompt answered between two readings of the counters."""
    before = await client.counters()
    with GpuSampler() as gpu:
        exchange = await client.chat(request_for(regime, boot, prompt), timeout_s=boot.timeout_s)
    after = await client.counters()
    return replace(
        sample_of(prompt, regime.name, exchange, before, after),
        boot_id=boot.boot_id,
        cached_tokens=exchange.usage.cached_tokens,
        wall_tok_s=None if exchange.error else wall_tok_s(exchange),
        finish_reason=exchange.finish_reason,
        energy_j=gpu.summary.energy_j if gpu.summary else None,
        power_mean_w=gpu.summary.power_mean_w if gpu.summary else None,
        sm_clock_mean_mhz=gpu.summary.sm_clock_mean_mhz if gpu.summary else None,
        throttled=gpu.summary.throttled if gpu.summary else None,
    )


def request_for(regime: Regime, boot: Boot, prompt: Prompt, max_tokens: int | None = None) -> ChatRequest:
    """Return a prompt's request as the regime sends it."""
    switch = (("chat_template_kwargs", {"enable_thinking": False}),) if boot.thinking_switch else ()
    return ChatRequest(
        messages=prompt.messages,
        max_tokens=max_tokens or regime.max_tokens[prompt.prompt_class],
        temperature=regime.temperature,
        top_p=regime.top_p,
        top_k=regime.top_k,
        min_p=regime.min_p,
        seed=regime.seed,
        extra=switch,
    )


def summarise_regime(samples: Sequence[BenchSample], regime: Regime) -> tuple[ClassSummary, ...]:
    """Return one summary a class. Where a rule stopped the class, its own interval, which allows for the looking."""
    return tuple(
        _summary([sample for sample in samples if sample.prompt_class is kind], kind, regime) for kind in regime.classes
    )


def _summary(samples: Sequence[BenchSample], kind: PromptClass, regime: Regime) -> ClassSummary:
    drafts = sum(sample.drafts or 0 for sample in samples)
    accepted = sum(sample.accepted_tokens or 0 for sample in samples)
    rates = [sample.decode_tok_s for sample in samples if sample.decode_tok_s is not None]
    rule = regime.rule(max(len(rates), 5))
    decode = (rule.decide(rates).estimate if rule and len(rates) >= 2 else None) or _estimate(rates)
    energies = [sample for sample in samples if sample.energy_j is not None and sample.completion_tokens]
    tokens = sum(sample.completion_tokens or 0 for sample in energies)
    return ClassSummary(
        regime=regime.name,
        prompt_class=kind,
        decode_tok_s=decode,
        prefill_tok_s=_estimate([sample.prefill_tok_s for sample in samples]),
        ttft_s=_estimate([sample.ttft_s for sample in samples]),
        wall_tok_s=_estimate([sample.wall_tok_s for sample in samples]),
        acceptance_length=1 + accepted / drafts if drafts else None,
        joules_a_token=sum(sample.energy_j or 0.0 for sample in energies) / tokens if tokens else None,
        failed=sum(1 for sample in samples if sample.decode_tok_s is None),
    )


def _estimate(values: Sequence[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    return estimate_mean(known) if known else None
