"""How fast a server reads: prompts of known length that it has never seen, salted at their first token.

A length that the context cannot hold is replaced by the longest that it can. The text is fitted by the server's own
tokenizer; where it offers none, by the count that it gives with an answer.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from redline.bench.regime import Regime
from redline.errors import EndpointError
from redline.probe.client import Client
from redline.probe.definitions import prefill_tok_s, ttft_s
from redline.probe.exchange import ChatRequest
from redline.probe.served import count_tokens
from redline.record.event import payload
from redline.stats.interval import Estimate, estimate_mean
from redline.workload.corpus import Corpus
from redline.workload.fit import fit_text_async
from redline.workload.salt import salted

_ANSWER_TOKENS: Final = 16
_TEMPLATE_TOKENS: Final = 64
_SHARE: Final = 0.92
_SMALLEST: Final = 512
_FIT_TOKENS: Final = 24


@payload("bench.prefill")
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillSample:
    """One long prompt. `unseen` says whether the server confirmed that none of it was cached; None: it does not say."""

    regime: str
    boot_id: str
    target_tokens: int
    prompt_tokens: int | None
    cached_tokens: int | None
    unseen: bool | None
    ttft_s: float | None
    prefill_tok_s: float | None
    error: str | None


@payload("bench.prefill.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillSummary:
    """All prompts of one length, with 95 % intervals."""

    regime: str
    target_tokens: int
    prefill_tok_s: Estimate | None
    ttft_s: Estimate | None
    failed: int


def lengths_that_fit(wanted: Sequence[int], context_tokens: int | None) -> tuple[int, ...]:
    """Return the lengths that the context holds, and the longest possible in place of those that it does not."""
    if context_tokens is None:
        return tuple(wanted[:1])
    most = int(context_tokens * _SHARE) - _ANSWER_TOKENS - _TEMPLATE_TOKENS
    found = sorted({min(length, most) for length in wanted})
    return tuple(length for length in found if length >= _SMALLEST)


async def run_prefill(
    client: Client,
    regime: Regime,
    boot_id: str,
    lengths: Sequence[int],
    seed: int,
    timeout_s: float = 600.0,
    done: int = 0,
) -> AsyncIterator[PrefillSample]:
    """Yield one sample a prompt; lengths take turns. The first `done` prompts were measured before.

    Raises:
        EndpointError: the server counts no tokens in any way, so that no length can be had.
    """
    for number in range(regime.prefill_runs):
        for at, length in enumerate(lengths):
            if number * len(lengths) + at < done:
                continue
            yield await _sample(client, regime, boot_id, length, f"{seed}/{length}/{number}", timeout_s)


async def _sample(
    client: Client, regime: Regime, boot_id: str, length: int, seed: str, timeout_s: float
) -> PrefillSample:
    corpus = Corpus(seed)

    def build(words: int) -> str:
        return salted(seed, f"{corpus.words(words)}\n\nSay in one sentence what this text is about.")

    async def count(text: str) -> int:
        tokens = await count_tokens(client, text)
        if tokens is None:
            raise EndpointError(
                f"{client.target.url} has no tokenizer to ask (/tokenize), so long prompts cannot be fitted.",
                next_step="Measure without them: --no-prefill.",
            )
        return tokens

    # At short lengths one word is more than the hundredth of them.
    text = (await fit_text_async(build, count, length, max(0.01, _FIT_TOKENS / length))).text
    request = ChatRequest(
        messages=({"role": "user", "content": text},), max_tokens=_ANSWER_TOKENS, temperature=0.0, seed=1
    )
    exchange = await client.chat(request, timeout_s=timeout_s)
    failed, cached = exchange.error is not None, exchange.usage.cached_tokens
    return PrefillSample(
        regime=regime.name,
        boot_id=boot_id,
        target_tokens=length,
        prompt_tokens=exchange.usage.prompt_tokens,
        cached_tokens=cached,
        # A template's own words before the salt may be cached, and they are few.
        unseen=None if cached is None else cached <= _TEMPLATE_TOKENS,
        ttft_s=None if failed else ttft_s(exchange),
        prefill_tok_s=None if failed else prefill_tok_s(exchange),
        error=f"{exchange.error.kind.value}: {exchange.error.message}" if exchange.error else None,
    )


def summarise_prefill(samples: Sequence[PrefillSample]) -> tuple[PrefillSummary, ...]:
    """Return one summary a length; a prompt that turned out to be cached is no measurement."""
    lengths = sorted({sample.target_tokens for sample in samples})
    return tuple(_summary(length, [s for s in samples if s.target_tokens == length]) for length in lengths)


def _summary(length: int, rows: Sequence[PrefillSample]) -> PrefillSummary:
    good = [row for row in rows if row.unseen is not False]
    rates = [row.prefill_tok_s for row in good if row.prefill_tok_s is not None]
    firsts = [row.ttft_s for row in good if row.ttft_s is not None]
    return PrefillSummary(
        regime=rows[0].regime,
        target_tokens=length,
        prefill_tok_s=estimate_mean(rates) if rates else None,
        ttft_s=estimate_mean(firsts) if firsts else None,
        failed=len(rows) - len(rates),
    )
