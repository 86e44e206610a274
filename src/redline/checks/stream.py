"""Does an answer arrive as it is made, with what a stream must say?"""

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus
from redline.probe.definitions import decode_tok_s, ttft_s

FEWEST_PIECES = 5


class Streaming(BaseCheck):
    """An answer arrives piece by piece, with a finish reason and the server's own token counts."""

    id, title, failure_class = "stream.granularity", "streaming", "buffered or truncated stream"
    most_tokens = (60, 64)

    async def run(self, context: CheckContext) -> CheckResult:
        """Stream sixty-odd tokens and look at how they came."""
        question = "Name the four seasons and say one sentence about each."
        exchange = await put(context, chat_request(context, question, 64))
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        tokens, pieces = exchange.usage.completion_tokens, len(exchange.chunks)
        if tokens is None:
            return self.result(CheckStatus.FAIL, "the stream ended without token counts (usage)")
        if tokens == 0:
            return self.result(CheckStatus.FAIL, f"usage says no token was made, and there are {pieces} pieces of text")
        if pieces < FEWEST_PIECES or (exchange.last_token_ns or 0) <= (exchange.first_token_ns or 0):
            return self.result(CheckStatus.FAIL, f"{tokens} tokens came in {pieces} piece(s): something buffers")
        metrics = {
            "completion_tokens": float(tokens),
            "pieces": float(pieces),
            "ttft_s": ttft_s(exchange) or 0.0,
        }
        if rate := decode_tok_s(exchange):
            metrics["decode_tok_s"] = rate
        return self.result(CheckStatus.PASS, f"{tokens} tokens in {pieces} pieces", metrics=metrics)
