"""Is a picture seen?"""

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus
from redline.workload.images import fact_image, facts_seen


class VisionFacts(BaseCheck):
    """Four facts of a drawn picture stand in the answer, all of them."""

    id, title, failure_class = "vision.facts", "vision", "vision broken"
    requires = ("vision",)
    most_tokens = (600, 96)

    async def run(self, context: CheckContext) -> CheckResult:
        """Show three shapes and a number, and ask what they are; the number changes with the seed."""
        image = fact_image(10 + (context.seed * 37 + 37) % 90)
        exchange = await put(context, chat_request(context, list(image.messages()), 96))
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        seen, missing = facts_seen(image, exchange.content)
        metrics = {"facts_seen": float(len(seen)), "facts": float(len(seen) + len(missing))}
        if missing:
            words = f"not seen: {', '.join(missing)}"
            return self.result(CheckStatus.FAIL, words, evidence=exchange.content, metrics=metrics)
        return self.result(CheckStatus.PASS, f"sees {', '.join(seen)}", metrics=metrics)
