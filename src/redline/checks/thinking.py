"""What does the server do about thinking: can it be turned on and off, and is it kept apart from the answer?"""

import re
from typing import Final

from redline.checks.asking import chat_request, leaked, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, ThinkingPolicy
from redline.checks.measures import MarkupKind, find_markup
from redline.probe.exchange import Exchange

_LEAST_REASONING: Final = 20
_SPLIT_TOKENS: Final = 480


def thought(exchange: Exchange) -> bool:
    """Whether an answer shows thinking: in its own field, or as markup in the content."""
    marks = (leak.kind for leak in find_markup(exchange.content))
    return bool(exchange.reasoning.strip()) or MarkupKind.REASONING in marks


class ThinkingSwitch(BaseCheck):
    """Thinking is seen when it is asked for and not seen when it is not; or always, and then every budget follows."""

    id, title, failure_class = "thinking.switch", "thinking switch", "thinking not controlled"
    requires = ("thinking",)
    most_tokens = (80, 24 + 96)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask the same twice, off and on, and believe what comes rather than what was sent."""
        seen = context.seen
        off = await put(context, chat_request(context, "Say OK.", 24))
        if broken := trouble(off):
            return self.result(CheckStatus.FAIL, broken)
        if thought(off):
            seen.thinking = ThinkingPolicy.ALWAYS_ON
            words = "it thinks whatever it is told: every budget is widened"
            return self.result(CheckStatus.PASS, words, evidence=off.reasoning or off.content)
        on = await put(context, chat_request(context, "Is 91 a prime number?", 96, thinking=True))
        if broken := trouble(on):
            return self.result(CheckStatus.FAIL, broken)
        if thought(on):
            seen.thinking = ThinkingPolicy.SWITCHABLE
            return self.result(CheckStatus.PASS, "on when asked for, off when not")
        seen.thinking = ThinkingPolicy.NONE
        return self.result(CheckStatus.FAIL, "it does not think when asked to", evidence=on.content)


class ThinkingSplit(BaseCheck):
    """Asked to think, the model reasons first, and the reasoning is kept apart from the answer."""

    id, title, failure_class = "thinking.split", "thinking", "reasoning parser missing"
    requires = ("thinking",)
    most_tokens = (60, _SPLIT_TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask a small sum with thinking on."""
        request = chat_request(context, "What is 17 + 25?", _SPLIT_TOKENS, thinking=True)
        exchange = await put(context, request, timeout_s=240)
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if len(exchange.reasoning.strip()) < _LEAST_REASONING:
            words = leaked(exchange.content) or "no reasoning arrived apart from the answer"
            return self.result(CheckStatus.FAIL, words, evidence=exchange.content)
        if mark := leaked(exchange.content):
            return self.result(CheckStatus.FAIL, mark, evidence=exchange.content)
        size = f"{len(exchange.reasoning)} characters of reasoning"
        if not exchange.content.strip():
            if exchange.finish_reason == "length":
                return self.result(CheckStatus.WARN, f"{size}, and the budget ended before the answer")
            return self.result(CheckStatus.FAIL, "reasoning, and no answer", evidence=exchange.reasoning)
        if not re.search(r"(?<!\d)42(?!\d)", exchange.content):
            return self.result(CheckStatus.FAIL, f"{size}, and a wrong sum", evidence=exchange.content)
        return self.result(CheckStatus.PASS, f"{size}, then the right sum")
