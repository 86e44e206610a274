"""Does an answer arrive as it is made, with what a stream must say?"""

from typing import Final

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import Exchange

FEWEST_PIECES: Final = 5
TOKENS: Final = 64
_QUESTIONS: Final = (
    "Write an essay of 350 words about the four seasons.",
    "Write an essay of 350 words about a day at the sea.",
)


class Streaming(BaseCheck):
    """An answer arrives piece by piece, with a finish reason and the server's own token counts."""

    id, title, failure_class = "stream.granularity", "streaming", "buffered or truncated stream"
    most_tokens = (120, 2 * TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Stream sixty-odd tokens and look at how they came.

        All at once is asked about again: on a busy machine this process may have slept through a short answer, while
        what buffers does so every time.
        """
        words = ""
        for question in _QUESTIONS:
            exchange = await put(context, chat_request(context, question, TOKENS))
            if wrong := trouble(exchange) or _uncounted(exchange):
                return self.result(CheckStatus.FAIL, wrong)
            if not _at_once(exchange):
                return self._passed(exchange)
            words = f"{exchange.usage.completion_tokens} tokens in {len(exchange.chunks)} piece(s)"
        return self.result(CheckStatus.FAIL, f"twice all came at once, the last time {words}: something buffers")

    def _passed(self, exchange: Exchange) -> CheckResult:
        tokens, pieces = exchange.usage.completion_tokens or 0, len(exchange.chunks)
        metrics = {
            "completion_tokens": float(tokens),
            "pieces": float(pieces),
            "ttft_s": ttft_s(exchange) or 0.0,
        }
        if rate := decode_tok_s(exchange):
            metrics["decode_tok_s"] = rate
        return self.result(CheckStatus.PASS, f"{tokens} tokens in {pieces} pieces", metrics=metrics)


def _uncounted(exchange: Exchange) -> str | None:
    tokens = exchange.usage.completion_tokens
    if tokens is None:
        return "the stream ended without token counts (usage)"
    return f"usage says no token was made, and there are {len(exchange.chunks)} pieces of text" if tokens == 0 else None


def _at_once(exchange: Exchange) -> bool:
    return len(exchange.chunks) < FEWEST_PIECES or (exchange.last_token_ns or 0) <= (exchange.first_token_ns or 0)
