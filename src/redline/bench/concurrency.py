"""Streams side by side: what they make together and each, on the window in which all of them decode, against the slots.

A round starts so many streams at once, each with a prompt of its own. Before the last of them has its first token and
after the first of them is done the server is not under the load that is asked about, so neither counts.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from redline.checks.check import CheckResult, CheckStatus
from redline.engine.counters import counters_delta
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import ChatRequest, Exchange
from redline.record.event import payload
from redline.stats.interval import Estimate, estimate_mean
from redline.units import NS_PER_S
from redline.workload.corpus import Corpus
from redline.workload.salt import salted

# Generated text takes about two tokens a word. A prompt must fill enough of the pool to show that it is too small.
TOKENS_A_WORD: Final = 2
PROMPT_TOKENS: Final = 1024
# Engines that count no preemptions still show them: a stream stops until another one is done.
STALL_SHARE: Final = 0.3
MIN_CHUNKS: Final = 16


@payload("concurrency.plan")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyPlan:
    """What is measured: rounds at each number of streams, all greedy, all of the same length."""

    levels: tuple[int, ...]
    rounds: int = 3
    max_tokens: int = 128
    prompt_tokens: int = PROMPT_TOKENS
    seed: int = 1
    slots: int | None = None
    timeout_s: float = 300.0
    send_thinking_switch: bool = True


@payload("concurrency.round")
@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round. Rates in tokens a second; the aggregate is None where no window held all streams."""

    streams: int
    number: int
    aggregate_tok_s: float | None
    window_s: float | None
    per_stream_tok_s: tuple[float, ...]
    ttft_s: tuple[float, ...]
    stalled: int
    preemptions: int | None
    errors: tuple[str, ...]


@payload("concurrency.level")
@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """All rounds of one number of streams, with 95 % intervals."""

    streams: int
    rounds: int
    aggregate_tok_s: Estimate | None
    per_stream_tok_s: Estimate | None
    ttft_s: Estimate | None
    ttft_max_s: float | None
    preemptions: int | None
    stalled_rounds: int
    errors: int


@payload("concurrency.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencySummary:
    """The levels and what they establish about the server's slots."""

    slots: int | None
    levels: tuple[Level, ...]
    results: tuple[CheckResult, ...]


async def run_concurrency(
    client: Client, plan: ConcurrencyPlan, done: Collection[tuple[int, int]] = ()
) -> AsyncIterator[Round]:
    """Yield each round but those `done`, (number, streams); the numbers of streams take turns, so drift hits all."""
    for number in range(plan.rounds):
        for streams in plan.levels:
            if (number, streams) in done:
                continue
            yield await _round(client, plan, streams, number)


async def _round(client: Client, plan: ConcurrencyPlan, streams: int, number: int) -> Round:
    requests = [_request(plan, f"{plan.seed}/{streams}/{number}/{stream}") for stream in range(streams)]
    before = await client.counters()
    exchanges = await asyncio.gather(*(client.chat(request, timeout_s=plan.timeout_s) for request in requests))
    after = await client.counters()
    delta = counters_delta(before, after) if before and after else None
    preemptions = None if delta is None or delta.preemptions is None else round(delta.preemptions)
    return round_of(streams, number, exchanges, preemptions)


def _request(plan: ConcurrencyPlan, seed: str) -> ChatRequest:
    """Return a request that shares nothing with another one: a generated text, and a story to go on with."""
    text = salted(
        seed, f"{Corpus(seed).words(plan.prompt_tokens // TOKENS_A_WORD)}\n\nTell a long story that begins with this."
    )
    switch = (("chat_template_kwargs", {"enable_thinking": False}),) if plan.send_thinking_switch else ()
    return ChatRequest(
        messages=({"role": "user", "content": text},),
        max_tokens=plan.max_tokens,
        temperature=0.0,
        seed=plan.seed,
        extra=switch,
    )


def round_of(streams: int, number: int, exchanges: Sequence[Exchange], preemptions: int | None) -> Round:
    """Return what a round's exchanges give."""
    good = [exchange for exchange in exchanges if exchange.error is None]
    window = overlap_ns(good) if len(good) == streams else None
    tokens = [tokens_within(exchange, *window) for exchange in good] if window else []
    known = [count for count in tokens if count is not None]
    seconds = (window[1] - window[0]) / NS_PER_S if window else None
    whole = bool(known) and len(known) == streams
    return Round(
        streams=streams,
        number=number,
        aggregate_tok_s=sum(known) / seconds if seconds and whole else None,
        window_s=seconds,
        per_stream_tok_s=tuple(rate for exchange in good if (rate := decode_tok_s(exchange)) is not None),
        ttft_s=tuple(first for exchange in good if (first := ttft_s(exchange)) is not None),
        stalled=sum(stalled(exchange) for exchange in good),
        preemptions=preemptions,
        errors=tuple(f"{e.error.kind.value}: {e.error.message}" for e in exchanges if e.error is not None),
    )


def overlap_ns(exchanges: Sequence[Exchange]) -> tuple[int, int] | None:
    """Return from the last first token to the first last token, or None where not all streams decode at once."""
    firsts = [exchange.first_token_ns for exchange in exchanges if exchange.first_token_ns is not None]
    lasts = [exchange.last_token_ns for exchange in exchanges if exchange.last_token_ns is not None]
    if not exchanges or len(firsts) < len(exchanges) or len(lasts) < len(exchanges) or min(lasts) <= max(firsts):
        return None
    return max(firsts), min(lasts)


def tokens_within(exchange: Exchange, begin_ns: int, end_ns: int) -> float | None:
    """Return how many tokens came after `begin_ns` and up to `end_ns`: the server's count, shared out by characters.

    A chunk may hold several tokens, so chunks cannot be counted; characters a token are near enough the same over one
    answer. None without the server's count.
    """
    characters = sum(chunk.characters for chunk in exchange.chunks)
    if not exchange.usage.completion_tokens or not characters:
        return None
    inside = sum(chunk.characters for chunk in exchange.chunks if begin_ns < chunk.at_ns <= end_ns)
    return exchange.usage.completion_tokens * inside / characters


def stalled(exchange: Exchange) -> bool:
    """Whether a stream stood still for over `STALL_SHARE` of its decoding: as one does that lost its place."""
    stamps = [chunk.at_ns for chunk in exchange.chunks]
    longest = max((later - earlier for earlier, later in pairwise(stamps)), default=0)
    return len(stamps) >= MIN_CHUNKS and longest > STALL_SHARE * (stamps[-1] - stamps[0])


def judge_concurrency(rounds: Sequence[Round], plan: ConcurrencyPlan) -> ConcurrencySummary:
    """Return the levels and whether the server holds as many streams as it has slots."""
    levels = tuple(_level(streams, [row for row in rounds if row.streams == streams]) for streams in plan.levels)
    return ConcurrencySummary(
        slots=plan.slots, levels=levels, results=(_errors(rounds), _fit(levels, plan.slots), _scaling(levels))
    )


def _level(streams: int, rows: Sequence[Round]) -> Level:
    counted = [row.preemptions for row in rows if row.preemptions is not None]
    firsts = [first for row in rows for first in row.ttft_s]
    return Level(
        streams=streams,
        rounds=len(rows),
        aggregate_tok_s=_estimate([row.aggregate_tok_s for row in rows if row.aggregate_tok_s is not None]),
        # One value a round: streams of one round are no independent witnesses.
        per_stream_tok_s=_estimate(
            [sum(row.per_stream_tok_s) / len(row.per_stream_tok_s) for row in rows if row.per_stream_tok_s]
        ),
        ttft_s=_estimate([sum(row.ttft_s) / len(row.ttft_s) for row in rows if row.ttft_s]),
        ttft_max_s=max(firsts, default=None),
        preemptions=sum(counted) if counted else None,
        stalled_rounds=sum(row.stalled > 0 for row in rows),
        errors=sum(len(row.errors) for row in rows),
    )


def _estimate(values: Sequence[float]) -> Estimate | None:
    return estimate_mean(values) if values else None


def _errors(rounds: Sequence[Round]) -> CheckResult:
    errors = [error for row in rounds for error in row.errors]
    tries = sum(row.streams for row in rounds)
    if errors:
        return _result("conc.errors", CheckStatus.FAIL, f"{len(errors)} of {tries} requests failed; first: {errors[0]}")
    if not tries:
        return _result("conc.errors", CheckStatus.INCONCLUSIVE, "no round was completed")
    return _result("conc.errors", CheckStatus.PASS, f"no error in {tries} requests")


def _fit(levels: Sequence[Level], slots: int | None) -> CheckResult:
    """Within its slots a server must hold all streams at once: none preempted, none kept waiting for another's end."""
    within = [level for level in levels if level.rounds and (slots is None or level.streams <= slots)]
    preempted = [level for level in within if level.preemptions]
    if preempted:
        words = ", ".join(f"{level.preemptions} at {level.streams} streams" for level in preempted)
        return _result("conc.fit", CheckStatus.FAIL, f"requests were preempted and computed again: {words}")
    apart = [level.streams for level in within if level.streams > 1 and not level.errors and not level.aggregate_tok_s]
    if apart and slots is not None:
        words = f"streams did not decode at the same time at {apart[0]}, although the server has {slots} slots"
        return _result("conc.fit", CheckStatus.FAIL, words)
    still = [level for level in within if level.streams > 1 and level.stalled_rounds > level.rounds / 2]
    if still:
        words = ", ".join(f"in {level.stalled_rounds} of {level.rounds} rounds of {level.streams}" for level in still)
        return _result("conc.fit", CheckStatus.WARN, f"streams stood still while others went on: {words}")
    if not within or all(level.aggregate_tok_s is None for level in within):
        return _result("conc.fit", CheckStatus.INCONCLUSIVE, "no rate at any number of streams within the slots")
    known = "no preemption" if any(level.preemptions is not None for level in within) else "preemptions not counted"
    most = max(level.streams for level in within)
    return _result("conc.fit", CheckStatus.PASS, f"up to {most} streams at once ({slots or 'unknown'} slots), {known}")


def _scaling(levels: Sequence[Level]) -> CheckResult:
    """More streams must not make less together; by intervals that do not touch."""
    known = [(level.streams, level.aggregate_tok_s) for level in levels if level.aggregate_tok_s is not None]
    if len(known) < 2:
        return _result("conc.scaling", CheckStatus.INCONCLUSIVE, "fewer than two numbers of streams have a rate")
    rates = ", ".join(f"{estimate.mean:.0f} tok/s at {streams}" for streams, estimate in known)
    for index, (streams, estimate) in enumerate(known):
        for fewer, other in known[:index]:
            if estimate.high is not None and other.low is not None and estimate.high < other.low:
                words = f"{streams} streams make less together than {fewer}: {rates}"
                return _result("conc.scaling", CheckStatus.FAIL, words)
    return _result("conc.scaling", CheckStatus.PASS, rates)


def _result(check_id: str, status: CheckStatus, message: str) -> CheckResult:
    kind = "slot or KV over-commit"
    return CheckResult(check_id=check_id, title=check_id, status=status, message=message, failure_class=kind)
