"""The smoke suite: is this the server that was asked for, and does it answer, stream, count and draft?"""

import json
from typing import Any, Final

from redline.checks.check import BaseCheck, Check, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.engine.counters import acceptance, counters_delta
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import ChatRequest, Exchange

_WEATHER_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        },
    },
}
# Every value is bounded: a small model may otherwise fill a string until its tokens run out, and that is no fault.
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "animal": {"type": "string", "enum": ["cat", "dog", "horse"]},
        "legs": {"type": "integer", "minimum": 0, "maximum": 10},
    },
    "required": ["animal", "legs"],
    "additionalProperties": False,
}


def _ask(text: str, max_tokens: int, **extra: Any) -> ChatRequest:
    return ChatRequest(
        messages=({"role": "user", "content": text},),
        max_tokens=max_tokens,
        temperature=0.0,
        extra=tuple(extra.items()),
    )


def _broken(exchange: Exchange) -> str | None:
    return f"{exchange.error.kind.value}: {exchange.error.message}" if exchange.error else None


class ModelListed(BaseCheck):
    """The server lists the model that this target names."""

    id, title, failure_class = "reach.models", "model listed", "wrong port or model"

    async def run(self, context: CheckContext) -> CheckResult:
        """Compare the list with the name."""
        listed = await context.client.model_ids()
        wanted = context.client.target.model
        if wanted in listed:
            return self.result(CheckStatus.PASS, f"{wanted} is served")
        return self.result(CheckStatus.FAIL, f"it serves {', '.join(listed) or 'nothing'}, not {wanted}")


class BasicAnswer(BaseCheck):
    """A question with a known answer is answered."""

    id, title, failure_class = "chat.basic", "basic answer", "garbage or empty answer"

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for a fact that the smallest models know."""
        question = "What is the capital city of France? Answer with the name of the city."
        exchange = await context.client.chat(_ask(question, 24))
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if "paris" in exchange.content.lower():
            return self.result(CheckStatus.PASS, "knows the capital of France", evidence=exchange.content)
        return self.result(CheckStatus.FAIL, "does not know the capital of France", evidence=exchange.content)


class Streaming(BaseCheck):
    """An answer arrives piece by piece, with a finish reason and the server's own token counts."""

    id, title, failure_class = "stream.granularity", "streaming", "buffered or truncated stream"

    async def run(self, context: CheckContext) -> CheckResult:
        """Stream sixty-odd tokens and look at how they came."""
        exchange = await context.client.chat(_ask("Name the four seasons and say one sentence about each.", 64))
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        tokens, pieces = exchange.usage.completion_tokens, len(exchange.chunks)
        if tokens is None:
            return self.result(CheckStatus.FAIL, "the stream ended without token counts (usage)")
        if exchange.finish_reason is None:
            return self.result(CheckStatus.FAIL, "the stream ended without a finish reason")
        if tokens == 0 or not exchange.content.strip():
            return self.result(CheckStatus.FAIL, "an answer of nothing", metrics={"completion_tokens": tokens})
        if pieces < 5 or (exchange.last_token_ns or 0) <= (exchange.first_token_ns or 0):
            return self.result(CheckStatus.FAIL, f"{tokens} tokens came in {pieces} piece(s): something buffers")
        metrics = {
            "completion_tokens": float(tokens),
            "pieces": float(pieces),
            "ttft_s": ttft_s(exchange) or 0.0,
        }
        if rate := decode_tok_s(exchange):
            metrics["decode_tok_s"] = rate
        return self.result(CheckStatus.PASS, f"{tokens} tokens in {pieces} pieces", metrics=metrics)


class JsonOutput(BaseCheck):
    """`response_format` with a JSON schema is obeyed to the letter."""

    id, title, failure_class = "output.json_schema", "JSON schema", "structured output broken"

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for a small object; validate keys and types."""
        form = {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": _SCHEMA}}
        question = "Describe a cat as JSON: which animal it is, and how many legs it has."
        request = _ask(question, 64, response_format=form)
        exchange = await context.client.chat(request)
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        try:
            value = json.loads(exchange.content)
        except ValueError:
            return self.result(CheckStatus.FAIL, "the answer is no JSON", evidence=exchange.content)
        good = (
            isinstance(value, dict)
            and set(value) == {"animal", "legs"}
            and value["animal"] in ("cat", "dog", "horse")
            and isinstance(value["legs"], int)
        )
        if not good:
            return self.result(CheckStatus.FAIL, "the JSON is not of the schema", evidence=exchange.content)
        return self.result(CheckStatus.PASS, "an object of exactly the asked shape", evidence=exchange.content)


class Drafting(BaseCheck):
    """The drafter drafts, and the target accepts some of it, seen in the engine's own counters."""

    id, title, failure_class = "spec.acceptance", "drafting", "dead drafter"

    async def run(self, context: CheckContext) -> CheckResult:
        """Have the model count, which every drafter can foresee, between two readings of the counters."""
        if not context.drafting:
            return self.skip(SkipReason.NOT_OFFERED, "this tier drafts nothing")
        before = await context.client.counters()
        exchange = await context.client.chat(_ask("Count from one to thirty in digits, separated by commas.", 96))
        after = await context.client.counters()
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        found = acceptance(counters_delta(before, after)) if before and after else None
        if found is None:
            return self.result(CheckStatus.INCONCLUSIVE, "the engine gives no drafting counters")
        if found.drafts == 0 or found.mean_length is None:
            return self.result(CheckStatus.FAIL, "nothing was drafted", metrics={"drafts": 0.0})
        metrics = {"drafts": float(found.drafts), "mean_length": found.mean_length, "rate": found.rate or 0.0}
        words = (
            f"{found.mean_length:.1f} tokens a drafted step, {found.accepted_tokens} of {found.draft_tokens} accepted"
        )
        if found.mean_length <= 1.05:
            return self.result(CheckStatus.FAIL, f"next to nothing is accepted: {words}", metrics=metrics)
        return self.result(CheckStatus.PASS, words, metrics=metrics)


class ToolCalling(BaseCheck):
    """A tool is called with arguments that are JSON."""

    id, title, failure_class = "tools.call", "tools", "tool parser broken"
    requires = ("tools",)

    async def run(self, context: CheckContext) -> CheckResult:
        """Offer one tool that the question needs."""
        request = _ask("What is the weather in Paris? Use the tool.", 200, tools=[_WEATHER_TOOL], tool_choice="auto")
        exchange = await context.client.chat(request)
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if not exchange.tool_calls:
            return self.result(CheckStatus.FAIL, "no tool was called", evidence=exchange.content)
        call = exchange.tool_calls[0]
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            return self.result(CheckStatus.FAIL, "the arguments are no JSON", evidence=call.arguments)
        if call.name != "get_weather" or "paris" not in str(arguments.get("city", "")).lower():
            return self.result(CheckStatus.FAIL, f"called {call.name} with {call.arguments}")
        return self.result(CheckStatus.PASS, f"called {call.name} with {call.arguments}")


class Thinking(BaseCheck):
    """Asked to think, the model reasons first, and the reasoning is kept apart from the answer."""

    id, title, failure_class = "thinking.split", "thinking", "reasoning parser missing"
    requires = ("thinking",)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask a small sum with thinking on."""
        request = _ask("What is 17 + 25?", 2000, chat_template_kwargs={"enable_thinking": True})
        exchange = await context.client.chat(request, timeout_s=240)
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if len(exchange.reasoning) < 20:
            return self.result(
                CheckStatus.FAIL, "no reasoning arrived apart from the answer", evidence=exchange.content
            )
        if not exchange.content and exchange.finish_reason != "length":
            return self.result(CheckStatus.FAIL, "reasoning, and no answer", evidence=exchange.reasoning)
        return self.result(CheckStatus.PASS, f"{len(exchange.reasoning)} characters of reasoning, then the answer")


class Vision(BaseCheck):
    """An image is seen."""

    id, title, failure_class = "vision.facts", "vision", "vision broken"
    requires = ("vision",)

    async def run(self, context: CheckContext) -> CheckResult:
        """Show a red square and ask for its colour."""
        image = {"type": "image_url", "image_url": {"url": _red_square()}}
        content = [image, {"type": "text", "text": "What color is this square? Answer with one word."}]
        request = ChatRequest(messages=({"role": "user", "content": content},), max_tokens=24, temperature=0.0)
        exchange = await context.client.chat(request)
        if broken := _broken(exchange):
            return self.result(CheckStatus.FAIL, broken)
        seen = "red" in exchange.content.lower()
        return self.result(
            CheckStatus.PASS if seen else CheckStatus.FAIL,
            "sees a red square" if seen else "did not see a red square",
            evidence=exchange.content,
        )


def _red_square() -> str:
    """Return a 64 x 64 red PNG as a data URL."""
    import base64
    import struct
    import zlib

    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\xe0\x10\x10" * 64 for _ in range(64))
    png = b"\x89PNG\r\n\x1a\n" + block(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
    png += block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def smoke_suite() -> tuple[Check, ...]:
    """Return the checks of the smoke suite, cheapest first."""
    return (
        ModelListed(),
        BasicAnswer(),
        Streaming(),
        JsonOutput(),
        Drafting(),
        ToolCalling(),
        Thinking(),
        Vision(),
    )
