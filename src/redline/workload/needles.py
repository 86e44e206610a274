"""Needles in a haystack: codes at known places in a generated text, the questions, and what an answer is worth.

Recall shows that positions can be addressed and nothing more: it stayed at 100 % where the key-value cache was damaged
enough to shift the tail of the distribution by half. Knows no server.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.workload.corpus import mixed_corpus
from redline.workload.salt import salt

POSITIONS: Final = (0.1, 0.5, 0.9)
_DATA: Final = Path(__file__).parent / "data" / "needles.yaml"
# No vowels, so that no word comes about, and nothing that reads like something else: 0 O, 1 I l, 5 S, 2 Z, 8 B.
_LETTERS: Final = "CDFGHJKLMNPQRTVWX34679"
_CODE: Final = re.compile(rf"(?<![A-Z0-9])[{_LETTERS}]{{6,8}}(?![A-Z0-9])")


class Recall(StrEnum):
    """What an answer to a needle's question was. Only `wrong` says that the text was misread."""

    RECALLED = "recalled"
    WRONG = "wrong"
    EMPTY = "empty"
    BUDGET_EXHAUSTED = "budget_exhausted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Needle:
    """A code, what it opens, the sentence that says so, and where it stands as a share of the text's words."""

    thing: str
    code: str
    sentence: str
    position: float

    @property
    def question(self) -> str:
        """The question for this needle alone."""
        return str(_load()["question"]).format(thing=self.thing)


@dataclass(frozen=True, slots=True)
class Haystack:
    """A salted text of so many words with its needles."""

    text: str
    needles: tuple[Needle, ...]

    def messages(self, question: str) -> tuple[dict[str, str], ...]:
        """Return the chat that shows the text and asks; the same text first, whatever is asked."""
        return ({"role": "user", "content": f"{self.text}\n\n{question}"},)


@lru_cache(maxsize=1)
def _load() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return loaded


def make_needles(seed: str, positions: Sequence[float] = POSITIONS) -> tuple[Needle, ...]:
    """Return one needle a position, in order, with distinct things and codes of six to eight characters.

    Raises:
        ValueError: a position outside 0 to 1, or more positions than there are things.
    """
    data, generator = _load(), random.Random(f"needles/{seed}")
    if any(not 0 <= position <= 1 for position in positions) or len(positions) > len(data["things"]):
        raise ValueError(f"needles go at 0 to 1 of the text, and at most {len(data['things'])} of them")
    needles: list[Needle] = []
    for thing, position in zip(generator.sample(data["things"], len(positions)), sorted(positions), strict=True):
        code = _new_code(generator, {needle.code for needle in needles})
        sentence = generator.choice(data["forms"]).format(thing=thing, code=code)
        needles.append(Needle(thing, code, sentence, position))
    return tuple(needles)


def _new_code(generator: random.Random, taken: set[str]) -> str:
    while True:
        code = "".join(generator.choices(_LETTERS, k=generator.randint(6, 8)))
        mixed = any(letter.isdigit() for letter in code) and any(letter.isalpha() for letter in code)
        if mixed and code not in taken:
            return code


def build_haystack(seed: str, words: int, positions: Sequence[float] = POSITIONS) -> Haystack:
    """Return a salted text of `words` words of the mixed corpus, with needles on lines of their own.

    The same seed and positions give the same needles at every length, so that a text can be fitted to a number of
    tokens by its words alone: `fit.fit_text(lambda n: build_haystack(seed, n).text, count, target)`.
    """
    needles = make_needles(seed, positions)
    pieces = re.findall(r"\S+\s*", mixed_corpus(seed).words(words))
    ends = [index + 1 for index, piece in enumerate(pieces) if "\n" in piece or piece.rstrip()[-1] in ".?!"]
    for needle in reversed(needles):
        due = needle.position * len(pieces)
        at = min((0, *ends, len(pieces)), key=lambda end: abs(end - due))
        pieces.insert(at, f"\n{needle.sentence}\n")
    return Haystack(salt(seed) + "".join(pieces), needles)


def question_all(needles: Sequence[Needle]) -> str:
    """Return one question for all needles, answered a line each."""
    things = [needle.thing for needle in needles]
    listed = things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}"
    return str(_load()["question_all"]).format(things=listed)


def score_recall(needle: Needle, others: Sequence[Needle], content: str, *, finish_reason: str | None = None) -> Recall:
    """Return what an answer to this needle's own question is worth; reasoning is no answer.

    Recalled: its code stands in the content, and none of the others'. An answer without any code is told apart by its
    cause: the budget ran out (in reasoning or in speech), nothing came, or it declined.
    """
    given = codes_in(content)
    if needle.code in given and not given & {other.code for other in others if other is not needle}:
        return Recall.RECALLED
    if given:
        return Recall.WRONG
    if finish_reason == "length":
        return Recall.BUDGET_EXHAUSTED
    if not content.strip():
        return Recall.EMPTY
    lowered = content.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return Recall.REFUSED if any(words in lowered for words in _load()["refusals"]) else Recall.WRONG


def score_all(needles: Sequence[Needle], content: str, *, finish_reason: str | None = None) -> tuple[Recall, ...]:
    """Return what an answer to `question_all` is worth, needle by needle, in their order.

    Each is judged by what stands between its name and the next one; where none is named, by the whole answer. An answer
    that was cut off excuses only what it named last or not at all.
    """
    lowered = content.lower()
    named = sorted(
        (lowered.find(needle.thing), index) for index, needle in enumerate(needles) if needle.thing in lowered
    )
    if not named:
        return tuple(score_recall(needle, (), content, finish_reason=finish_reason) for needle in needles)
    starts = [start for start, _ in named]
    said = {index: content[start:end] for (start, index), end in zip(named, [*starts[1:], len(content)], strict=True)}
    last = named[-1][1]
    return tuple(
        score_recall(
            needle,
            needles,
            said.get(index, ""),
            finish_reason=finish_reason if index == last or index not in said else None,
        )
        for index, needle in enumerate(needles)
    )


def codes_in(content: str) -> frozenset[str]:
    """Return everything in a text that has the shape of a code, in upper case and without hyphens."""
    found = _CODE.findall(content.upper().replace("-", ""))
    return frozenset(code for code in found if any(letter.isdigit() for letter in code))
