"""The quick benchmark: a few prompts of some classes, one at a time, classes taken in turn so that drift hits all.

Every prompt is sent once. Acceptance comes from the engine's counters read right before and after each request.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from redline.engine.counters import Acceptance, Counters, acceptance, counters_delta
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, prefill_tok_s, ttft_s
from redline.probe.exchange import ChatRequest, Exchange
from redline.record.event import payload
from redline.stats.interval import Estimate, estimate_mean
from redline.workload.prompts import Prompt, PromptClass, prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickRegime:
    """What is held equal in every run of this benchmark; `name` stands in the record."""

    name: str = "quick-2"
    classes: tuple[PromptClass, ...] = (PromptClass.PROSE, PromptClass.CODE)
    per_class: int = 5
    max_tokens: int = 96
    temperature: float = 0.0
    seed: int = 1


@payload("bench.sample")
@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSample:
    """One measured request. Rates in tokens a second, times in seconds; None where the definition gives no value."""

    regime: str
    prompt_class: PromptClass
    prompt_index: int
    completion_tokens: int | None
    prompt_tokens: int | None
    decode_tok_s: float | None
    prefill_tok_s: float | None
    ttft_s: float | None
    drafts: int | None
    draft_tokens: int | None
    accepted_tokens: int | None
    error: str | None
    accepted_by_position: tuple[int, ...] | None = None
    boot_id: str | None = None
    cached_tokens: int | None = None
    wall_tok_s: float | None = None
    finish_reason: str | None = None
    energy_j: float | None = None
    power_mean_w: float | None = None
    sm_clock_mean_mhz: float | None = None
    throttled: tuple[str, ...] | None = None


@payload("bench.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSummary:
    """What the samples of one class add up to, with 95 % intervals. `failed` counts requests without a rate."""

    regime: str
    prompt_class: PromptClass
    decode_tok_s: Estimate | None
    prefill_tok_s: Estimate | None
    ttft_s: Estimate | None
    acceptance_length: float | None
    failed: int
    wall_tok_s: Estimate | None = None
    joules_a_token: float | None = None


async def run_quick(client: Client, regime: QuickRegime) -> AsyncIterator[BenchSample]:
    """Yield each measured request; a first, unmeasured one warms the path up."""
    await client.chat(_request(Prompt(PromptClass.CHAT, -1, "Say good morning."), regime, max_tokens=8))
    chosen = {kind: prompts(kind, regime.seed)[: regime.per_class] for kind in regime.classes}
    for round_index in range(regime.per_class):
        for kind in regime.classes:
            if round_index < len(chosen[kind]):
                yield await _measure(client, chosen[kind][round_index], regime)


async def _measure(client: Client, prompt: Prompt, regime: QuickRegime) -> BenchSample:
    before = await client.counters()
    exchange = await client.chat(_request(prompt, regime))
    after = await client.counters()
    return sample_of(prompt, regime.name, exchange, before, after)


def sample_of(
    prompt: Prompt, regime: str, exchange: Exchange, before: Counters | None, after: Counters | None
) -> BenchSample:
    """Return the sample that an exchange and the counters around it make."""
    delta = counters_delta(before, after) if before and after else None
    drafting: Acceptance | None = acceptance(delta)
    by_position = delta.accepted_by_position if delta else None
    failed = exchange.error is not None
    return BenchSample(
        regime=regime,
        prompt_class=prompt.prompt_class,
        prompt_index=prompt.index,
        completion_tokens=exchange.usage.completion_tokens,
        prompt_tokens=exchange.usage.prompt_tokens,
        decode_tok_s=None if failed else decode_tok_s(exchange),
        prefill_tok_s=None if failed else prefill_tok_s(exchange),
        ttft_s=None if failed else ttft_s(exchange),
        drafts=drafting.drafts if drafting else None,
        draft_tokens=drafting.draft_tokens if drafting else None,
        accepted_tokens=drafting.accepted_tokens if drafting else None,
        error=f"{exchange.error.kind.value}: {exchange.error.message}" if exchange.error else None,
        accepted_by_position=None if by_position is None else tuple(round(count) for count in by_position),
    )


def _request(prompt: Prompt, regime: QuickRegime, max_tokens: int | None = None) -> ChatRequest:
    return ChatRequest(
        messages=prompt.messages,
        max_tokens=max_tokens or regime.max_tokens,
        temperature=regime.temperature,
        seed=regime.seed,
    )


def summarise(samples: Sequence[BenchSample], regime: QuickRegime) -> tuple[ClassSummary, ...]:
    """Return one summary a class, in the regime's order."""
    return tuple(
        _summary([sample for sample in samples if sample.prompt_class is kind], kind, regime.name)
        for kind in regime.classes
    )


def _summary(samples: Sequence[BenchSample], kind: PromptClass, regime: str) -> ClassSummary:
    drafts = sum(sample.drafts or 0 for sample in samples)
    accepted = sum(sample.accepted_tokens or 0 for sample in samples)
    return ClassSummary(
        regime=regime,
        prompt_class=kind,
        decode_tok_s=_estimate([sample.decode_tok_s for sample in samples]),
        prefill_tok_s=_estimate([sample.prefill_tok_s for sample in samples]),
        ttft_s=_estimate([sample.ttft_s for sample in samples]),
        acceptance_length=1 + accepted / drafts if drafts else None,
        failed=sum(1 for sample in samples if sample.decode_tok_s is None),
    )


def _estimate(values: Sequence[float | None]) -> Estimate | None:
    known = [value for value in values if value is not None]
    return estimate_mean(known) if known else None
