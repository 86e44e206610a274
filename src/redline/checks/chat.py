"""Is a plain question answered?"""

from redline.checks.asking import chat_request, leaked, only_thought, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus


class BasicAnswer(BaseCheck):
    """A question with a known answer is answered."""

    id, title, failure_class = "chat.basic", "basic answer", "garbage or empty answer"
    most_tokens = (60, 24)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for a fact that the smallest models know."""
        question = "What is the capital city of France? Answer with the name of the city."
        exchange = await put(context, chat_request(context, question, 24))
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if only_thought(exchange):
            return self.result(CheckStatus.INCONCLUSIVE, "its budget went into thinking, though told not to think")
        if mark := leaked(exchange.content):
            return self.result(CheckStatus.FAIL, mark, evidence=exchange.content)
        if "paris" in exchange.content.lower():
            return self.result(CheckStatus.PASS, "knows the capital of France", evidence=exchange.content)
        return self.result(CheckStatus.FAIL, "does not know the capital of France", evidence=exchange.content)
