"""Requests at the edges: a large tool result, an editor's request, an agent's history, a long stretch of output.

Each has an oracle of its own: what a good answer to that request looks like, not that any answer came.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

from redline.checks.asking import bad_calls, case_request, leaked, only_thought, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.checks.fit import context_limit, count_tokens
from redline.checks.measures import TextVerdict, judge_text
from redline.probe.exchange import ErrorKind, Exchange
from redline.workload.boundary import (
    HISTORY_FUNCTIONS,
    PREFILL_CHARACTERS,
    ChatCase,
    agent_history,
    ide_shaped,
    long_reasoning,
    tool_prefill,
)
from redline.workload.tools import tool_name

_ANSWER_TOKENS: Final = 320
_TIMEOUT_S: Final = 300.0
_LEAST_ANSWER: Final = 50
# What of the context a boundary prompt may fill, so that the answer has room.
_PROMPT_SHARE: Final = 0.7
_REASONING_TOKENS: Final = 2048
_LEAST_REASONED: Final = 500
# Models that do not think are shown the same task, and asked for less.
_LEAST_WRITTEN: Final = 100


async def _size(context: CheckContext, case: ChatCase) -> int:
    text = json.dumps([*case.messages, *case.tools])
    return await count_tokens(context.client, text)


class _ToolBoundary(BaseCheck, ABC):
    """A request of an agent's shape: it must be answered, or a tool called that was offered."""

    requires = ("tools",)

    @abstractmethod
    def case(self, seed: str, share: float) -> ChatCase:
        """Return the request, its largest part scaled to a share."""

    async def run(self, context: CheckContext) -> CheckResult:
        """Send the request, made smaller where the server's context is."""
        seed = f"{self.id}/{context.seed}"
        case, limit = self.case(seed, 1.0), await context_limit(context.client)
        size = await _size(context, case)
        if limit is not None and size > _PROMPT_SHARE * limit:
            case = self.case(seed, _PROMPT_SHARE * limit / size)
            if await _size(context, case) + _ANSWER_TOKENS > limit:
                return self.skip(SkipReason.NOT_OFFERED, f"a context of {limit} tokens does not hold this request")
        exchange = await put(context, case_request(context, case, _ANSWER_TOKENS), _TIMEOUT_S)
        metrics = {"prompt_tokens": float(exchange.usage.prompt_tokens or 0)}
        wrong = self.wrong(case, exchange)
        if wrong is None and only_thought(exchange):
            return self.result(CheckStatus.INCONCLUSIVE, "its budget went into thinking", metrics=metrics)
        if wrong is not None:
            # An answer that came is no crash, whatever it says.
            kind = "" if exchange.error else "bad answer to an agent's request"
            said = exchange.content
            return self.result(CheckStatus.FAIL, wrong, evidence=said, metrics=metrics, failure_class=kind)
        form = f"called {exchange.tool_calls[0].name}" if exchange.tool_calls else f"{len(exchange.content)} characters"
        words = f"{form} after {exchange.usage.prompt_tokens or '?'} tokens"
        return self.result(CheckStatus.PASS, words, evidence=exchange.content, metrics=metrics)

    def wrong(self, case: ChatCase, exchange: Exchange) -> str | None:
        """Return what is wrong with the answer, None when it is a good one or only thought."""
        if broken := trouble(exchange):
            return _named(exchange, broken)
        if exchange.tool_calls:
            if case.tool_choice == "none":
                return f"it called {exchange.tool_calls[0].name}, and was told to call nothing"
            return bad_calls(exchange, [tool_name(tool) for tool in case.tools])
        if only_thought(exchange):
            return None
        if len(exchange.content.strip()) < _LEAST_ANSWER:
            return f"an answer of {len(exchange.content.strip())} characters"
        judged = judge_text(exchange.content)
        return leaked(exchange.content) or (judged.reason if judged.verdict is TextVerdict.DEGENERATE else None)


def _named(exchange: Exchange, broken: str) -> str:
    """Say it apart when the server refused: a template that takes no such history is no crash."""
    error = exchange.error
    if error is not None and error.kind is ErrorKind.STATUS and error.status == 400:
        return f"refused: {error.message}"
    return broken


class ToolPrefill(_ToolBoundary):
    """One large tool result at once, which is where a single prefill's memory peaks."""

    id, title, failure_class = "boundary.tool_prefill", "large tool result", "single-prefill out of memory"

    def case(self, seed: str, share: float) -> ChatCase:
        """See `_ToolBoundary`."""
        return tool_prefill(seed, int(PREFILL_CHARACTERS * share))


class IdeShape(_ToolBoundary):
    """An editor's request: long rules, ten tools that may not be used, a file to be changed."""

    id, title, failure_class = "boundary.ide_shape", "editor's request", "single-prefill out of memory"

    def case(self, seed: str, share: float) -> ChatCase:
        """See `_ToolBoundary`; it is small and of one size."""
        return ide_shaped(seed)


class AgentHistory(_ToolBoundary):
    """The middle of an agent's work: calls and results in the history, one of them a whole file."""

    id, title, failure_class = "boundary.agent_history", "agent's history", "history templating"

    def case(self, seed: str, share: float) -> ChatCase:
        """See `_ToolBoundary`."""
        return agent_history(seed, max(4, int(HISTORY_FUNCTIONS * share)))


class LongReasoning(BaseCheck):
    """A task that takes many tokens is worked on to the end of the budget, or to a real end, without falling apart."""

    id, title, failure_class = "boundary.long_reasoning", "long reasoning", "early stop"

    async def run(self, context: CheckContext) -> CheckResult:
        """Set a proof; count the tokens, and judge the text as far as this model is known to be coherent."""
        case = long_reasoning(f"{self.id}/{context.seed}")
        limit = await context_limit(context.client)
        capabilities = context.model.capabilities if context.model else None
        reach = capabilities.coherent_tokens if capabilities else None
        tokens = min(_REASONING_TOKENS, limit // 2 if limit else _REASONING_TOKENS)
        tokens = min(tokens, reach.tokens) if reach else tokens
        thinks = capabilities is None or capabilities.thinking.offered
        least = min(_LEAST_REASONED if thinks else _LEAST_WRITTEN, tokens)
        request = case_request(context, case, tokens)
        if thinks:
            switched = [pair for pair in request.extra if pair[0] != "chat_template_kwargs"]
            request = replace(request, extra=(*switched, ("chat_template_kwargs", {"enable_thinking": True})))
        exchange = await put(context, request, 600.0)
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        made, whole = exchange.usage.completion_tokens or 0, exchange.reasoning + exchange.content
        metrics = {"completion_tokens": float(made)}
        if made < least:
            words = f"it stopped after {made} tokens, where {least} are the least for this task"
            return self.result(CheckStatus.FAIL, words, evidence=whole, metrics=metrics)
        judged = judge_text(whole)
        if judged.verdict is TextVerdict.DEGENERATE:
            return self.result(CheckStatus.FAIL, judged.reason, evidence=whole[-400:], metrics=metrics)
        return self.result(CheckStatus.PASS, f"{made} tokens, {exchange.finish_reason}", metrics=metrics)
