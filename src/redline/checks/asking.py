"""How checks ask: requests with thinking set as wanted, what makes an answer unusable.

Knows no question. Thinking is turned off for every check that is not about it, and what came is looked at: a model
that thinks all the same is not failed for an answer that its budget cut off.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from redline.checks.check import CheckContext, ThinkingPolicy
from redline.checks.measures import find_markup
from redline.probe.exchange import ChatRequest, ErrorKind, Exchange
from redline.workload.boundary import ChatCase

# What a model that cannot be kept from thinking may think before it answers.
THINKING_TOKENS: Final = 512
TIMEOUT_S: Final = 60.0


def chat_request(
    context: CheckContext,
    content: Any,
    max_tokens: int,
    *,
    thinking: bool = False,
    temperature: float = 0.0,
    **extra: Any,
) -> ChatRequest:
    """Return a request for one user message, or for a list of messages, with thinking on or off."""
    messages = tuple(content) if isinstance(content, list | tuple) else ({"role": "user", "content": content},)
    always = context.seen.thinking is ThinkingPolicy.ALWAYS_ON
    return ChatRequest(
        messages=messages,
        max_tokens=max_tokens + (THINKING_TOKENS if always and not thinking else 0),
        temperature=temperature,
        seed=context.seed,
        extra=(*thinking_fields(context, on=thinking), *extra.items()),
    )


def case_request(context: CheckContext, case: ChatCase, max_tokens: int) -> ChatRequest:
    """Return the request of a boundary case, its answer bounded."""
    extra: dict[str, Any] = {"tools": list(case.tools), "tool_choice": case.tool_choice} if case.tools else {}
    limit = min(case.max_tokens, max_tokens)
    return chat_request(context, list(case.messages), limit, temperature=case.temperature, **extra)


def thinking_fields(context: CheckContext, *, on: bool) -> tuple[tuple[str, Any], ...]:
    """Return the fields that turn thinking on or off; none where the model is known not to think."""
    model = context.model
    if model is not None and not model.capabilities.thinking.offered:
        return ()
    return (("chat_template_kwargs", {"enable_thinking": on}),)


async def put(context: CheckContext, request: ChatRequest, timeout_s: float = TIMEOUT_S) -> Exchange:
    """Send a request and remember whether it ended."""
    exchange = await context.client.chat(request, timeout_s=timeout_s * context.patience)
    seen = context.seen
    timed_out = exchange.error is not None and exchange.error.kind is ErrorKind.TIMEOUT
    seen.silent = exchange.error.message if timed_out and exchange.error else ""
    seen.fault = _transport_fault(exchange)
    return exchange


def _transport_fault(exchange: Exchange) -> str:
    """Return the class of a fault that has nothing to do with what was asked; a death without a word is none yet."""
    kind = exchange.error.kind if exchange.error else None
    if kind is ErrorKind.SERVER:
        return "error with status 200"
    if kind is ErrorKind.TIMEOUT:
        return "endless or hanging stream" if exchange.chunks else "hang"
    return "truncated stream" if kind is ErrorKind.TRUNCATED and exchange.chunks else ""


def trouble(exchange: Exchange) -> str | None:
    """Return why an exchange has no usable answer, or None when it has one."""
    if exchange.error is not None:
        return f"{exchange.error.kind.value}: {exchange.error.message}"
    if exchange.finish_reason is None:
        return "the stream ended without a finish reason"
    if not exchange.content.strip() and not exchange.tool_calls and not exchange.reasoning.strip():
        return "an answer of nothing"
    return None


def only_thought(exchange: Exchange) -> bool:
    """Whether the budget went into reasoning, so that nothing can be said about the answer."""
    return bool(exchange.reasoning) and not exchange.content.strip() and exchange.finish_reason == "length"


def leaked(text: str) -> str | None:
    """Return the first mark of the model's own language that stands in an answer."""
    leaks = find_markup(text)
    return f"{leaks[0].kind.value} markup in the answer: {leaks[0].text}" if leaks else None


def argument_object(text: str) -> dict[str, Any] | None:
    """Return a tool call's arguments, None where they are no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def bad_calls(exchange: Exchange, names: Sequence[str]) -> str | None:
    """Return what is wrong with an answer's tool calls: a tool that was not offered, arguments that are no object."""
    for call in exchange.tool_calls:
        if call.name not in names:
            return f"it called {call.name!r}, which was not offered"
        if argument_object(call.arguments or "{}") is None:
            return f"the arguments of {call.name} are no JSON object: {call.arguments[:120]}"
    return None
