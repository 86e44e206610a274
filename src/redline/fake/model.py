"""The tiny model: what it says to a prompt. Knows no tokens' times and no wire.

It answers what can be known (a capital, a sum, a code hidden in the prompt, a picture with facts, a tool that fits,
JSON of a schema) and otherwise goes on in seeded sentences. The same prompt and seed get the same answer.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, Final

from redline.fake import image, recall, schema, text
from redline.fake.prompt import Prompt
from redline.fake.scenario import Answer, Model

# A minus, a slash and an x count only between spaces, since dates, paths and sizes have them too.
_SUM: Final = re.compile(r"(-?\d+)(\s*[+*×·]\s*|\s+[x/−-]\s+)(-?\d+)")  # noqa: RUF001 -- signs as people type them
_WORDS: Final = re.compile(r"(\d[\d,]*)[- ]words?\b")
_UP_TO: Final = re.compile(r"[Cc]ount (?:from )?(\d+) (?:to|through|up to) (\d+)")
_OPEN_TOKENS: Final = 600
_REPEATS: Final = re.compile(r"[Rr]epeat\b[^:\n]*:\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool; `arguments` is JSON text."""

    name: str
    arguments: str

    @property
    def markup(self) -> str:
        """The call as the model writes it, before a parser takes it out of the text."""
        return f'<tool_call>\n{{"name": "{self.name}", "arguments": {self.arguments}}}\n</tool_call>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says, in order: reasoning, content, calls."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()


def reply(prompt: Prompt, model: Model, answer: Answer, seed: int, number: int = 0) -> Reply:
    """Return the model's answer to the `number`-th request, with the faults of `answer` in it."""
    key = f"{prompt.seed if prompt.seed is not None else seed}/{prompt.text}"
    thinks = model.thinking == "always" or (
        model.thinking == "switch" and (model.thinks_unasked if prompt.thinking is None else prompt.thinking)
    )
    found = Reply(reasoning=text.reasoning(key, prompt.question) if thinks else "")
    if answer.text == "repeats":
        return replace(found, content=text.GARBAGE_LINE * 400)
    if answer.tool_calls == "unasked" and prompt.tool_choice == "none":
        prompt = replace(prompt, tool_choice="required")
    call = _call(prompt) if model.tools and prompt.tools else None
    if call is None:
        return replace(found, content=_content(prompt, model, answer, key))
    if answer.tool_calls == "text":
        return replace(found, content=call.markup)
    if answer.tool_calls == "lost_after_reasoning" and thinks and number % answer.tool_calls_lost_every == 0:
        return replace(found, reasoning=f"{found.reasoning} I call {call.name} now.")
    return replace(found, calls=(call,))


def _call(prompt: Prompt) -> Call | None:
    """Return the call that the prompt needs: a tool that was demanded, or one whose words are in the question."""
    choice = prompt.tool_choice
    if choice == "none" or (prompt.after_tool and choice == "auto"):
        return None
    tools = {str(tool.get("name")): tool for tool in prompt.tools}
    question = prompt.question.lower()
    if isinstance(choice, dict):
        name: str | None = str((choice.get("function") or choice).get("name"))
    else:
        scores = {name: _overlap(tool, question) for name, tool in tools.items()}
        best = max(scores, key=lambda item: scores[item])
        name = best if scores[best] > 0 or choice == "required" else None
    if name is None or name not in tools:
        return None
    arguments = schema.instance(tools[name].get("parameters") or {"type": "object"}, prompt.question)
    return Call(name=name, arguments=json.dumps(arguments))


def _overlap(tool: dict[str, Any], question: str) -> int:
    words = set(re.findall(r"[a-z]{4,}", str(tool.get("name", "")).lower().replace("_", " ")))
    named = str(tool.get("name", "")).lower() in question
    return sum(word in question for word in words) + 5 * named


def _content(prompt: Prompt, model: Model, answer: Answer, key: str) -> str:
    if prompt.schema is not None and answer.json == "normal":
        return json.dumps(schema.instance(prompt.schema, prompt.question))
    if prompt.images and model.vision:
        seen = None if answer.images == "unseen" else image.describe(prompt.images[-1])
        return f"The picture shows: {seen}." if seen else "I see no picture, only text."
    if prompt.after_tool:
        result = str(prompt.messages[-1].get("content", ""))[:160].strip()
        return f"The tool says: {result}\n\n{text.prose(key, 60)}"
    asked = recall.last_words(prompt.question)
    known = recall.recall(prompt.text, asked, answer.recall_tokens) or _known(prompt.question, asked)
    return known or text.prose(key, _length(asked))


def _known(question: str, asked: str) -> str | None:
    if "capital" in asked.lower():
        for country, capital in text.knowledge()["capitals"].items():
            if country in asked:
                return f"The capital of {country} is {capital}."
    if match := _UP_TO.search(asked):
        first, last = int(match[1]), int(match[2])
        return " ".join(str(n) for n in range(first, min(last, first + 5000) + 1))
    if match := _REPEATS.search(question):
        return (match[1].strip() + "\n") * (5 if "five times" in question else 1)
    if match := _SUM.search(asked):
        sign = match[2].strip()
        return f"{match[1]} {sign} {match[3]} = {_compute(int(match[1]), sign, int(match[3]))}"
    if re.search(r"\bsay ok\b", asked, re.IGNORECASE):
        return "OK"
    return None


def _compute(left: int, sign: str, right: int) -> int | str:
    match sign:
        case "+":
            return left + right
        case "*" | "x" | "×" | "·":  # noqa: RUF001
            return left * right
        case "/":
            return left // right if right and left % right == 0 else "no whole number"
    return left - right


def _length(question: str) -> int:
    """Return how long an open answer is: what the question asks for, else `_OPEN_TOKENS`."""
    if match := _WORDS.search(question):
        return int(match[1].replace(",", "")) * 3 // 2
    return _OPEN_TOKENS
