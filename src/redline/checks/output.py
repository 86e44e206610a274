"""Is what comes out of the asked form, and still language after some hundred tokens?"""

import json
from typing import Any, Final

from redline.checks.asking import chat_request, leaked, only_thought, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.checks.measures import TextVerdict, judge_text

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
_ESSAY_TOKENS: Final = 500
# Fewer tokens than this are too few words to judge (measures.MIN_WORDS, MIN_CHARACTERS).
_LEAST_TOKENS: Final = 100
SUBJECTS: Final = ("a harbour town", "a long train journey", "an old library", "a mountain village", "a market square")


class JsonOutput(BaseCheck):
    """`response_format` with a JSON schema is obeyed to the letter."""

    id, title, failure_class = "output.json_schema", "JSON schema", "structured output broken"
    most_tokens = (80, 64)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for a small object; validate keys, types and ranges."""
        form = {"type": "json_schema", "json_schema": {"name": "animal", "strict": True, "schema": _SCHEMA}}
        question = "Describe a cat as JSON: which animal it is, and how many legs it has."
        exchange = await put(context, chat_request(context, question, 64, response_format=form))
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        if only_thought(exchange):
            return self.result(CheckStatus.INCONCLUSIVE, "its budget went into thinking, though told not to think")
        try:
            value = json.loads(exchange.content)
        except ValueError:
            return self.result(CheckStatus.FAIL, "the answer is no JSON", evidence=exchange.content)
        if not _of_schema(value):
            return self.result(CheckStatus.FAIL, "the JSON is not of the schema", evidence=exchange.content)
        return self.result(CheckStatus.PASS, "an object of exactly the asked shape", evidence=exchange.content)


def essay(subject: str) -> str:
    """Return the request for a text that is long enough to fall apart."""
    return f"Write an essay of 350 words about {subject}."


def _of_schema(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"animal", "legs"}:
        return False
    legs = value["legs"]
    whole = isinstance(legs, int) and not isinstance(legs, bool)
    return value["animal"] in ("cat", "dog", "horse") and whole and 0 <= legs <= 10


class Degeneration(BaseCheck):
    """A long answer stays language: no loop, no dwindling to a few words, no noise, no markup in it."""

    id, title, failure_class = "output.degeneration", "long answer", "cascade or repetition"
    most_tokens = (60, _ESSAY_TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for an essay, no longer than this model is known to stay coherent, and judge the text."""
        known = context.model.capabilities.coherent_tokens if context.model else None
        tokens = min(_ESSAY_TOKENS, known.tokens) if known else _ESSAY_TOKENS
        if known and tokens < _LEAST_TOKENS:
            return self.skip(
                SkipReason.NOT_OFFERED, f"this model repeats itself after {known.tokens} tokens: {known.why}"
            )
        subject = SUBJECTS[context.seed % len(SUBJECTS)]
        exchange = await put(context, chat_request(context, essay(subject), tokens), timeout_s=240)
        if broken := trouble(exchange):
            return self.result(CheckStatus.FAIL, broken)
        judged = judge_text(exchange.content or exchange.reasoning)
        found = judged.measures
        metrics = {
            "words": float(found.words),
            "repeated_share": found.repeated,
            "distinct_share": found.distinct,
            "compression_ratio": found.compression,
        }
        if mark := leaked(exchange.content):
            return self.result(CheckStatus.FAIL, mark, evidence=exchange.content, metrics=metrics)
        if judged.verdict is TextVerdict.DEGENERATE:
            return self.result(CheckStatus.FAIL, judged.reason, evidence=exchange.content[-400:], metrics=metrics)
        if judged.verdict is TextVerdict.TOO_SHORT:
            words = f"the answer ended after {found.words} words: too short to judge"
            return self.result(CheckStatus.INCONCLUSIVE, words, evidence=exchange.content, metrics=metrics)
        return self.result(CheckStatus.PASS, f"{found.words} words of varied text", metrics=metrics)
