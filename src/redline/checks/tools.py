"""Are tools called: in a whole answer, in a stream, and after reasoning?

A call after reasoning is lost now and then rather than always (vllm#39056), so that is asked several times and judged
by Wilson's interval of the share that came.
"""

from enum import StrEnum
from typing import Any, Final

from redline.checks.asking import argument_object, chat_request, leaked, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus
from redline.probe.exchange import Exchange
from redline.stats.interval import wilson_interval

WEATHER_TOOL: Final[dict[str, Any]] = {
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
_CITIES: Final = ("Paris", "Oslo", "Lima", "Cairo", "Rome", "Madrid", "Tokyo", "Athens", "Lisbon", "Ottawa", "Warsaw")
_CALL_TOKENS: Final = 128
_THINK_TOKENS: Final = 256
# A share of calls below this is a fault that a user meets within an afternoon.
NEEDED_SHARE: Final = 0.9


def _question(city: str) -> str:
    return f"What is the weather in {city}? Use the tool."


def wrong_call(name: str, arguments: str, city: str) -> str | None:
    """Return what is wrong with a call of the weather tool for a city, or None."""
    value = argument_object(arguments)
    if value is None:
        return "the arguments are no JSON object"
    if name != "get_weather":
        return f"called {name!r}, which was not offered"
    if city.lower() not in str(value.get("city", "")).lower():
        return f"called for {value.get('city')!r} instead of {city}"
    unit = value.get("unit", "celsius")
    if unit not in ("celsius", "fahrenheit") or set(value) - {"city", "unit"}:
        return "the arguments are not of the tool's schema"
    return None


class ToolCall(BaseCheck):
    """A tool is called in an answer that is not streamed, with arguments of its schema."""

    id, title, failure_class = "tools.call", "tools", "tool parser broken"
    requires = ("tools",)
    most_tokens = (260, _CALL_TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Offer one tool that the question needs."""
        request = chat_request(context, _question("Paris"), _CALL_TOKENS, tools=[WEATHER_TOOL], tool_choice="auto")
        body = request.body(context.client.target.model, stream=False)
        reply = await context.client.post("/v1/chat/completions", body, timeout_s=60 * context.patience)
        if reply.status != 200:
            return self.result(CheckStatus.FAIL, f"status {reply.status}: {reply.text[:200]}")
        try:
            choice = reply.data["choices"][0]
            message, finish = choice["message"], choice["finish_reason"]
            calls = [call["function"] for call in message.get("tool_calls") or []]
        except (KeyError, TypeError, IndexError):
            return self.result(CheckStatus.FAIL, "the answer is no chat completion", evidence=reply.text)
        content = str(message.get("content") or "")
        if not calls:
            words = leaked(content) or ("no tool was called" if content.strip() else "neither a call nor an answer")
            return self.result(CheckStatus.FAIL, words, evidence=content)
        if wrong := wrong_call(str(calls[0].get("name")), str(calls[0].get("arguments")), "Paris"):
            return self.result(CheckStatus.FAIL, wrong, evidence=str(calls[0]))
        if finish != "tool_calls":
            return self.result(CheckStatus.FAIL, f"a call with finish reason {finish!r}", evidence=str(calls[0]))
        return self.result(CheckStatus.PASS, f"called get_weather with {calls[0]['arguments']}")


class StreamedToolCall(BaseCheck):
    """A streamed tool call can be put together from its pieces."""

    id, title, failure_class = "tools.stream", "streamed tool call", "tool parser broken"
    requires = ("tools",)
    most_tokens = (260, _CALL_TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Offer one tool that the question needs, and stream the answer."""
        city = _CITIES[1]
        request = chat_request(context, _question(city), _CALL_TOKENS, tools=[WEATHER_TOOL], tool_choice="auto")
        exchange = await put(context, request)
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        outcome, words = judge_trial(exchange, city)
        status = {Trial.CALLED: CheckStatus.PASS, Trial.UNDECIDED: CheckStatus.INCONCLUSIVE}
        return self.result(status.get(outcome, CheckStatus.FAIL), words, evidence=exchange.content)


class Trial(StrEnum):
    """What became of one question that needs a tool."""

    CALLED = "called"
    DROPPED = "dropped"
    WRONG = "wrong"
    UNDECIDED = "undecided"


def judge_trial(exchange: Exchange, city: str) -> tuple[Trial, str]:
    """Return what became of a streamed question, and how to say it."""
    if broken := trouble(exchange):
        return Trial.DROPPED, broken
    if exchange.tool_calls:
        call = exchange.tool_calls[0]
        wrong = wrong_call(call.name, call.arguments, city) or leaked(exchange.content)
        if wrong is None and exchange.finish_reason != "tool_calls":
            wrong = f"a call with finish reason {exchange.finish_reason!r}"
        return (Trial.WRONG, wrong) if wrong else (Trial.CALLED, f"called {call.name} with {call.arguments}")
    if exchange.finish_reason == "length":
        return Trial.UNDECIDED, "its budget ended before a call"
    return Trial.DROPPED, leaked(exchange.content) or "no tool was called"


class ToolCallAfterThinking(BaseCheck):
    """Thinking is on, the answer is streamed, and the call still arrives, in several trials."""

    failure_class = "tool call dropped after reasoning"
    requires = ("tools", "thinking")

    def __init__(
        self, check_id: str = "tools.stream_thinking", title: str = "tool call after thinking", trials: int = 3
    ) -> None:
        self.id, self.title, self.trials = check_id, title, trials
        self.most_tokens = (270 * trials, _THINK_TOKENS * trials)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask until the share of calls is decided, at most `trials` times; each trial about another city."""
        seen: list[Trial] = []
        worst = ""
        for index in range(self.trials):
            city = _CITIES[(context.seed + index) % len(_CITIES)]
            request = chat_request(
                context, _question(city), _THINK_TOKENS, thinking=True, temperature=0.6,
                tools=[WEATHER_TOOL], tool_choice="auto",
            )  # fmt: skip
            exchange = await put(context, request, timeout_s=120)
            outcome, words = judge_trial(exchange, city)
            seen.append(outcome)
            worst = worst if outcome in (Trial.CALLED, Trial.UNDECIDED) else words
            if _decided(seen) or context.seen.silent:
                break
        return self._verdict(seen, worst)

    def _verdict(self, seen: list[Trial], worst: str) -> CheckResult:
        told = [trial for trial in seen if trial is not Trial.UNDECIDED]
        if not told:
            return self.result(CheckStatus.INCONCLUSIVE, f"in {len(seen)} trials its budget ended before a call")
        called = told.count(Trial.CALLED)
        low, high = wilson_interval(called, len(told))
        metrics = {"trials": float(len(told)), "called": float(called), "share_low": low, "share_high": high}
        words = f"{called} of {len(told)} calls arrived (95 %: {low:.0%} to {high:.0%})"
        if called == len(told):
            return self.result(CheckStatus.PASS, words, metrics=metrics)
        if high < NEEDED_SHARE:
            return self.result(CheckStatus.FAIL, f"{words}; {worst}", metrics=metrics)
        return self.result(CheckStatus.WARN, f"{words}: more trials would tell; {worst}", metrics=metrics)


def _decided(seen: list[Trial]) -> bool:
    """Whether the share is surely too low, after at least two trials that told something."""
    told = [trial for trial in seen if trial is not Trial.UNDECIDED]
    return len(told) >= 2 and wilson_interval(told.count(Trial.CALLED), len(told))[1] < NEEDED_SHARE
