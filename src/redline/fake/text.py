"""Seeded text: as many sentences as asked for, no two neighbours alike. Knows words, not questions."""

import random
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

_KNOWLEDGE: Final = Path(__file__).parent / "data" / "knowledge.yaml"
GARBAGE_LINE: Final = "!!!!!!!!!!!!!!!!\n"


@cache
def knowledge() -> dict[str, Any]:
    """Return what the tiny model knows, as its file has it."""
    loaded: dict[str, Any] = yaml.safe_load(_KNOWLEDGE.read_text(encoding="utf-8"))
    return loaded


def prose(seed: str, tokens: int) -> str:
    """Return sentences of at least `tokens` tokens, in paragraphs; the same seed gives the same text."""
    words, draw = knowledge(), random.Random(seed)
    parts: list[str] = []
    size = 0
    while size < tokens:
        sentence = " ".join(draw.choice(words[kind]) for kind in ("subjects", "verbs", "objects", "places"))
        end = "\n\n" if draw.random() < 0.2 else " "
        parts.append(f"{sentence[0].upper()}{sentence[1:]}.{end}")
        size += len(sentence) // 5 + 2  # fewer than it has, so that the text is never too short
    return "".join(parts).rstrip()


def reasoning(seed: str, topic: str) -> str:
    """Return a short train of thought about a question."""
    draw = random.Random(f"reasoning/{seed}")
    lines = draw.sample(knowledge()["reasoning"], 4)
    return f"I am asked: {topic[:80].strip()} " + " ".join(lines)
