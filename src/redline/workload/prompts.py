"""Prompt classes for measuring: each a list of own-written prompts, taken in a seeded order.

A prompt is not repeated within a server's life: lookup drafting remembers earlier answers, and a prefix cache earlier
prompts, so the second answer would be measured on help that the first did not have.
"""

import random
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

from redline.workload.salt import salted

_DATA: Final = Path(__file__).parent / "data" / "prompts.yaml"
SUMMARY_WORDS: Final = 1200


class PromptClass(StrEnum):
    """What an answer is like: prose, code, a chat, text that repeats its prompt, JSON, or a long text's summary."""

    PROSE = "prose"
    CODE = "code"
    CHAT = "chat"
    EDIT = "edit"
    STRUCTURED = "structured"
    SUMMARY = "summary"


# What a quick look takes: classes of short prompts.
SHORT_CLASSES: Final = (PromptClass.PROSE, PromptClass.CODE, PromptClass.CHAT, PromptClass.EDIT)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of a class; `index` names it across runs."""

    prompt_class: PromptClass
    index: int
    text: str

    @property
    def messages(self) -> tuple[dict[str, str], ...]:
        """The prompt as a chat."""
        return ({"role": "user", "content": self.text},)


@lru_cache(maxsize=1)
def _load() -> dict[str, list[str]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, list[str]] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return loaded


def prompts(prompt_class: PromptClass, seed: int, summary_words: int = SUMMARY_WORDS) -> tuple[Prompt, ...]:
    """Return all prompts of a class in an order that the seed fixes.

    A summary's prompt is a salted text of `summary_words` generated words (about twice as many tokens), another one for
    every seed and index, and then what is to be done with it.
    """
    texts = _load()[prompt_class.value]
    if prompt_class is PromptClass.SUMMARY:
        texts = [_with_text(f"{seed}/summary/{index}", text, summary_words) for index, text in enumerate(texts)]
    found = [Prompt(prompt_class, index, text) for index, text in enumerate(texts)]
    random.Random(f"{seed}/{prompt_class.value}").shuffle(found)
    return tuple(found)


def _with_text(seed: str, task: str, words: int) -> str:
    from redline.workload.corpus import Corpus

    return salted(seed, f"{Corpus(seed).words(words)}\n\n{task}")
