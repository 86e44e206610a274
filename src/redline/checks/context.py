"""How far the context can be filled, found again in, and decoded in: the ladder, the ceiling, the rate at depth.

Filling and finding are two verdicts. A rung whose code was not found again was still filled; and recall proves that
positions can be addressed, nothing about quality (club-3090#1017, #1124).
"""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final, Self

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.checks.fit import OVERHEAD_TOKENS, context_limit, fit_haystack
from redline.engine.counters import counters_delta
from redline.probe.definitions import decode_tok_s, prefill_tok_s, ttft_s
from redline.probe.exchange import Exchange
from redline.units import format_bytes
from redline.workload.needles import POSITIONS, Haystack, Recall, score_recall

RUNGS: Final = (0.25, 0.5, 0.75)
CEILING: Final = 0.92
_LEAST_RUNG: Final = 512
_CODE_TOKENS: Final = 40
_TIMEOUT_S: Final = 600.0
# A salted prompt shares its template's head with others, and nothing else.
_MOST_CACHED: Final = 128
_DECODE_TOKENS: Final = 96
_DECODE_DEPTH: Final = 0.75
# The cache that a step reads grows with depth, so some slowing is honest; tenfold is the fault of club-3090#1096.
SLOW_SHARE: Final = 0.2
_SUSPECT_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One filled prompt. `cached` is None where nothing tells; `places` are those of `recalls`."""

    target: int
    depth: int
    error: str | None
    recalls: tuple[Recall, ...]
    places: tuple[float, ...]
    cached: int | None
    prefill_tok_s: float | None
    least_free: int | None
    least_gpu_free: int | None


class MemoryWatch:
    """The least free memory seen while a block runs, read every tenth of a second; None where it cannot be read.

    `least` is the host's, `least_gpu` that of the fullest GPU.
    """

    def __init__(self, context: CheckContext) -> None:
        self._host, self._gpu = context.free_bytes, context.gpu_free_bytes
        self._task: asyncio.Task[None] | None = None
        self.least: int | None = None
        self.least_gpu: int | None = None

    async def __aenter__(self) -> Self:
        if self._host is not None or self._gpu is not None:
            self._look()
            self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._look()

    def _look(self) -> None:
        self.least = _lower(self.least, self._host() if self._host else None)
        self.least_gpu = _lower(self.least_gpu, self._gpu() if self._gpu else None)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            self._look()


def _lower(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


async def climb(context: CheckContext, seed: str, target: int, positions: tuple[float, ...]) -> Rung:
    """Fill a prompt to `target` tokens and ask for each of its needles, one question a request.

    Raises:
        InconclusiveError: the server does not count tokens, or no text comes near the target.
    """
    haystack, _ = await fit_haystack(context, seed, target, positions)
    before = await context.client.counters()
    async with MemoryWatch(context) as memory:
        first = await _ask_for(context, haystack, 0)
        after = await context.client.counters()
        others = [await _ask_for(context, haystack, at) for at in range(1, len(positions)) if first.error is None]
    answers = [first, *others]
    delta = counters_delta(before, after) if before and after else None
    counted = None if delta is None or delta.cached_prompt_tokens is None else round(delta.cached_prompt_tokens)
    cached = counted if first.usage.cached_tokens is None else first.usage.cached_tokens
    told = [
        (place, score_recall(needle, haystack.needles, answer.content, finish_reason=answer.finish_reason))
        for place, needle, answer in zip(positions, haystack.needles, answers, strict=False)
        if answer.error is None
    ]
    return Rung(
        target=target,
        depth=first.usage.prompt_tokens or target,
        error=next((words for answer in answers if answer.error and (words := trouble(answer))), None),
        recalls=tuple(recall for _, recall in told),
        places=tuple(place for place, _ in told),
        cached=cached,
        prefill_tok_s=prefill_tok_s(first) if cached is not None and cached <= _MOST_CACHED else None,
        least_free=memory.least,
        least_gpu_free=memory.least_gpu,
    )


async def _ask_for(context: CheckContext, haystack: Haystack, index: int) -> Exchange:
    messages = list(haystack.messages(haystack.needles[index].question))
    return await put(context, chat_request(context, messages, _CODE_TOKENS), _TIMEOUT_S)


def _positions(context: CheckContext, index: int) -> tuple[float, ...]:
    """One position a rung by turns, so that a whole ladder sees all of them; or every one on every rung."""
    return POSITIONS if context.needles >= len(POSITIONS) else (POSITIONS[index % len(POSITIONS)],)


def _rung_metrics(rung: Rung) -> dict[str, float]:
    found: dict[str, float | None] = {
        f"prefill_tok_s_at_{rung.depth}": rung.prefill_tok_s,
        f"cached_tokens_at_{rung.depth}": _float(rung.cached),
        f"least_free_bytes_at_{rung.depth}": _float(rung.least_free),
        f"least_gpu_free_bytes_at_{rung.depth}": _float(rung.least_gpu_free),
        **{
            f"needle_at_{rung.depth}_{round(100 * place)}": float(recall is Recall.RECALLED)
            for place, recall in zip(rung.places, rung.recalls, strict=True)
        },
    }
    return {name: value for name, value in found.items() if value is not None}


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _free_words(rung: Rung) -> str:
    gpu = "" if rung.least_gpu_free is None else f", {format_bytes(rung.least_gpu_free)} free on the fullest GPU"
    host = "" if rung.least_free is None else f", {format_bytes(rung.least_free)} free on the host"
    return f"{gpu}{host} at the least" if gpu or host else ""


def _cache_words(rungs: list[Rung]) -> str:
    if any(rung.cached is None for rung in rungs):
        return "; whether prompts were cached is not known, so no prefill rate is given"
    if any((rung.cached or 0) > _MOST_CACHED for rung in rungs):
        return "; salted prompts count as cached, so no prefill rate is given"
    return ""


class ContextLadder(BaseCheck):
    """A quarter, half and three quarters of the context can be filled."""

    id, title, failure_class = "ctx.ladder", "context ladder", "state out of memory at depth"

    async def run(self, context: CheckContext) -> CheckResult:
        """Fill rung after rung with a text that was never sent before, and stop at the first that fails."""
        limit = await context_limit(context.client)
        if limit is None:
            return self.skip(SkipReason.UNMET, "the server does not say how much context it has")
        rungs: list[Rung] = []
        metrics: dict[str, float] = {"context_tokens": float(limit)}
        for index, share in enumerate(RUNGS):
            target = int(limit * share)
            if target < _LEAST_RUNG:
                continue
            rung = await climb(context, f"ladder/{context.seed}/{index}", target, _positions(context, index))
            context.seen.recalls += [(rung.depth, recall.value) for recall in rung.recalls]
            metrics |= _rung_metrics(rung)
            if rung.error is not None:
                filled = max((one.depth for one in rungs), default=0)
                metrics["filled_tokens"] = float(filled)
                words = f"at {target} of {limit} tokens: {rung.error}; filled up to {filled}"
                return self.result(CheckStatus.FAIL, words, metrics=metrics)
            rungs.append(rung)
        if not rungs:
            return self.skip(SkipReason.NOT_OFFERED, f"a context of {limit} tokens has no depth")
        metrics["filled_tokens"] = float(rungs[-1].depth)
        cache = _cache_words(rungs)
        words = f"filled {', '.join(str(rung.depth) for rung in rungs)} of {limit} tokens{cache}"
        return self.result(CheckStatus.WARN if cache else CheckStatus.PASS, words, metrics=metrics)


class ContextCeiling(BaseCheck):
    """Ninety-two per cent of the advertised context can be filled and are answered: it boots, and it can be used."""

    id, title, failure_class = "ctx.ceiling", "context ceiling", "boots but cannot be filled"

    async def run(self, context: CheckContext) -> CheckResult:
        """Fill it once."""
        limit = await context_limit(context.client)
        if limit is None:
            return self.skip(SkipReason.UNMET, "the server does not say how much context it has")
        target = int(limit * CEILING)
        if target - OVERHEAD_TOKENS < _LEAST_RUNG:
            return self.skip(SkipReason.NOT_OFFERED, f"a context of {limit} tokens has no depth")
        rung = await climb(context, f"ceiling/{context.seed}", target, _positions(context, 1))
        context.seen.recalls += [(rung.depth, recall.value) for recall in rung.recalls]
        metrics = {"context_tokens": float(limit), **_rung_metrics(rung)}
        if rung.error is not None:
            words = f"{target} of the {limit} tokens that it advertises: {rung.error}"
            return self.result(CheckStatus.FAIL, words, metrics=metrics)
        words = f"filled {rung.depth} of {limit} tokens{_free_words(rung)}"
        return self.result(CheckStatus.PASS, words, metrics=metrics)


class ContextRecall(BaseCheck):
    """Codes that the rungs held are found again, as deep as this model is known to."""

    id, title, failure_class = "ctx.recall", "recall at depth", "recall lost at depth"

    async def run(self, context: CheckContext) -> CheckResult:
        """Judge what ladder and ceiling were answered; asks nothing."""
        reach = context.model.capabilities.recall_tokens if context.model else None
        told = [(depth, Recall(word)) for depth, word in context.seen.recalls]
        if reach is not None:
            told = [(depth, word) for depth, word in told if depth <= reach.tokens]
            if not told:
                depth = f"up to {reach.tokens} tokens" if reach.tokens else "at no depth"
                words = f"this model finds codes again {depth}: {reach.why}"
                return self.skip(SkipReason.NOT_OFFERED, words)
        if not told:
            return self.skip(SkipReason.UNMET, "no rung was answered")
        found = [depth for depth, word in told if word is Recall.RECALLED]
        metrics = {"asked": float(len(told)), "recalled": float(len(found)), "deepest": float(max(found, default=0))}
        words = f"{len(found)} of {len(told)} codes found again"
        missed = [(depth, word) for depth, word in told if word is not Recall.RECALLED]
        if not missed:
            return self.result(CheckStatus.PASS, f"{words}, the deepest at {max(found)} tokens", metrics=metrics)
        first, why = min(missed)
        words = f"{words}; missed from {first} tokens on: {why.value}"
        wrong = any(word is Recall.WRONG for _, word in missed)
        # Without a known reach, or with answers that a budget or a refusal ended, nothing is proved.
        status = CheckStatus.FAIL if wrong and context.model is not None else CheckStatus.INCONCLUSIVE
        return self.result(status, words, metrics=metrics)


class DecodeAtDepth(BaseCheck):
    """Decoding deep in the context is not much slower than at its beginning (club-3090#1096)."""

    id, title, failure_class = "decode.at_depth", "decode rate at depth", "slow decode at depth"

    async def run(self, context: CheckContext) -> CheckResult:
        """Compare the better of two rates at either depth, by the server's token counts."""
        limit = await context_limit(context.client)
        if limit is None:
            return self.skip(SkipReason.UNMET, "the server does not say how much context it has")
        target = int(limit * _DECODE_DEPTH)
        haystack, fitted = await fit_haystack(context, f"decode/{context.seed}", target, ())
        asked = ("Write a long story that begins in this place.", "Describe at length what could happen next.")
        shallow, deep = await self._rates(context, "", asked), await self._rates(context, haystack.text, asked)
        if isinstance(shallow, str) or isinstance(deep, str):
            # An error at depth is the ladder's to judge; here it only means that there is no rate.
            broken = deep if isinstance(deep, str) else shallow
            return self.result(CheckStatus.INCONCLUSIVE, f"no rate: {broken}")
        if not shallow or not deep:
            return self.result(CheckStatus.INCONCLUSIVE, "the answers were too short for a rate")
        share = max(deep) / max(shallow)
        metrics = {
            "depth_tokens": float(fitted.tokens),
            "shallow_tok_s": max(shallow),
            "deep_tok_s": max(deep),
            "share": share,
        }
        words = f"{max(deep):.1f} tok/s at {fitted.tokens} tokens, {max(shallow):.1f} at the beginning ({share:.0%})"
        status = CheckStatus.PASS if share >= _SUSPECT_SHARE else CheckStatus.WARN
        return self.result(CheckStatus.FAIL if share < SLOW_SHARE else status, words, metrics=metrics)

    async def _rates(self, context: CheckContext, text: str, asked: tuple[str, ...]) -> list[float] | str:
        rates: list[float] = []
        for question in asked:
            request = chat_request(context, f"{text}\n\n{question}".lstrip(), _DECODE_TOKENS, ignore_eos=True)
            exchange = await put(context, request, _TIMEOUT_S)
            if broken := trouble(exchange):
                return broken
            if ttft_s(exchange) is not None and (rate := decode_tok_s(exchange)):
                rates.append(rate)
        return rates
