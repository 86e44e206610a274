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

_DATA: Final = Path(__file__).parent / "data" / "prompts.yaml"


class PromptClass(StrEnum):
    """What an answer is like: free prose, code, a chat, or text that repeats its prompt."""

    PROSE = "prose"
    CODE = "code"
    CHAT = "chat"
    EDIT = "edit"


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


def prompts(prompt_class: PromptClass, seed: int) -> tuple[Prompt, ...]:
    """Return all prompts of a class in an order that the seed fixes."""
    found = [Prompt(prompt_class, index, text) for index, text in enumerate(_load()[prompt_class.value])]
    random.Random(f"{seed}/{prompt_class.value}").shuffle(found)
    return tuple(found)
