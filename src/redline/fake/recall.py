"""Finds what was hidden in a long prompt: codes and phrases, by the words that stand around them."""

import re
import zlib
from typing import Final

from redline.fake import tokens

# A code has digits among its letters, or is long and all capitals or digits; a year is none.
_CODE: Final = re.compile(
    r"\b(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9-]{4,}\b|\b\d{5,}\b|\b[A-Z]{6,}\b"
)
_NAMED: Final = re.compile(r"\b(?:code|key|phrase|password|secret)s?\b", re.IGNORECASE)
_ASKS: Final = re.compile(r"\b(?:what|which|who|where|find|recall|remember|repeat|give|name|list)\b", re.IGNORECASE)
_LONG_CHARS: Final = 2000  # below this a prompt hides nothing
_PHRASE: Final = re.compile(
    r"\b(?:code|key|phrase|password|secret)\b[^.\n]{0,60}?\b(?:is|are)\b:?\s+[\"“]?([^.\"”\n]{3,60})"
)
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_COMMON: Final = frozenset(
    _WORD.findall("the and for was what which who that this with from only answer please reply give tell name")
)


def last_words(message: str) -> str:
    """Return what a long message asks in the end: its last paragraph, or its last 300 characters."""
    return message if len(message) <= 600 else message.rstrip().rpartition("\n\n")[2][-300:]


def recall(prompt: str, question: str, reach_tokens: int | None) -> str | None:
    """Return the hidden values that the question asks for, or None when nothing is hidden or asked.

    With `reach_tokens`, a value that stands further from the end of the prompt is replaced by a wrong one.
    """
    body, _, _ = prompt.rpartition(question)
    if not _NAMED.search(question) and (len(body) < _LONG_CHARS or not _ASKS.search(question)):
        return None
    wanted = {word.lower() for word in _WORD.findall(question)} - _COMMON
    hidden = _hidden(body)
    sentences = [item for item in hidden if _NAMED.search(item[1])] if _NAMED.search(question) else hidden
    if not sentences:
        return None
    shared = set.intersection(*(_words(sentence) for _, sentence, _ in sentences)) if len(sentences) > 1 else set()
    scores = [len((_words(sentence) - shared) & wanted) for _, sentence, _ in sentences]
    named = bool(_NAMED.search(question))
    best = max(scores)
    if best == 0 and not named:
        return None  # something is hidden, and the question is about something else
    chosen = [item for item, score in zip(sentences, scores, strict=True) if best == 0 or score > 0]
    lines = []
    for at, sentence, value in chosen:
        lost = reach_tokens is not None and tokens.count(prompt[at:]) > reach_tokens
        lines.append(sentence.replace(value, _wrong(value)) if lost else sentence)
    return "\n".join(lines)


def _hidden(body: str) -> list[tuple[int, str, str]]:
    """Return every sentence that holds a code or a phrase: where it begins, its text, the value."""
    found = []
    for match in re.finditer(r"[^.\n!?]{10,300}", body):
        sentence = match.group().strip()
        value = _CODE.search(sentence) or (_PHRASE.search(sentence) if _NAMED.search(sentence) else None)
        if value:
            found.append((match.start(), sentence, value.group(value.lastindex or 0)))
    return found


def _words(sentence: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(_CODE.sub(" ", sentence))}


def _wrong(value: str) -> str:
    """Return a value of the same shape that is not the right one."""
    letters = [chr(65 + (zlib.crc32(f"{value}/{n}".encode()) % 26)) if c.isalpha() else c for n, c in enumerate(value)]
    digits = [str((int(c) + 3) % 10) if c.isdigit() else c for c in letters]
    return "".join(digits)
