"""How a text repeats, how it compresses, and whether marks of the model's own language leaked into it.

A verdict here says that a text has degenerated, whatever it was about: stuck in a loop, down to a few words, or no
language at all. Its limits were set on generated good and bad texts, and on real code (docs/degeneration.md); a list of
like objects, a times table and a song with a refrain must pass. Knows no server and no prompt. For languages that put
spaces between words.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import yaml

# Below this many words or characters nothing can be said: a short answer may rightly be one word twice.
MIN_WORDS: Final = 40
MIN_CHARACTERS: Final = 240
# A loop: the same words again and again, at least three times more, over at least so many words.
LOOP_WORDS: Final = 40
LOOP_TIMES: Final = 3
_LONGEST_PERIOD: Final = 120
# A counting loop: the same but for its numbers. Tables and test cases do that with few words, stuck sentences with
# this many different ones.
COUNTING_WORDS: Final = 8
CHARACTER_LOOP: Final = 200
_LONGEST_CHARACTER_PERIOD: Final = 12
# Worst over windows of so many words, or bytes: a text that breaks late is broken.
WINDOW_WORDS: Final = 200
WINDOW_BYTES: Final = 1500
MOST_REPEATED: Final = 0.75
FEWEST_DISTINCT: Final = 0.10
MOST_COMPRESSION: Final = 9.0
LEAST_COMPRESSION: Final = 1.45

_Whole = TypeVar("_Whole", str, bytes, list[str])

_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"\d+")
_DATA: Final = Path(__file__).parent / "data" / "markup.yaml"


class MarkupKind(StrEnum):
    """Whose mark it is."""

    TOOL = "tool"
    REASONING = "reasoning"
    CONTROL = "control"


class TextVerdict(StrEnum):
    """Whether a text is one."""

    HEALTHY = "healthy"
    DEGENERATE = "degenerate"
    TOO_SHORT = "too_short"


@dataclass(frozen=True, slots=True)
class Loop:
    """A stretch that repeats itself: the length of what is repeated, and how much text it covers, in words."""

    period: int
    covered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMeasures:
    """What was measured. Shares and ratios are those of the worst window.

    `repeated`: share of runs of four words that came before in the window. `distinct`: distinct words over words.
    `compression`: size over size deflated, the highest and the lowest. `character_loop`: characters in the longest
    stretch that repeats up to twelve characters.
    """

    words: int
    characters: int
    repeated: float
    distinct: float
    compression: float
    least_compression: float
    loop: Loop | None
    counting_loop: Loop | None
    character_loop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TextJudgement:
    """The verdict, why, and what it rests on."""

    verdict: TextVerdict
    reason: str
    measures: TextMeasures


@dataclass(frozen=True, slots=True)
class Leak:
    """A mark that stands in a text, and where."""

    kind: MarkupKind
    text: str
    at: int


def measure_text(text: str) -> TextMeasures:
    """Return the measures of a text of any length."""
    words = _WORD.findall(text.lower())
    numbered = [_NUMBER.sub("#", word) for word in words]
    ratios = [len(part) / len(zlib.compress(part, 9)) for part in _windows(text.encode(), WINDOW_BYTES)]
    return TextMeasures(
        words=len(words),
        characters=len(text),
        repeated=max(_repeated(part) for part in _windows(words, WINDOW_WORDS)),
        distinct=min(len(set(part)) / len(part) if part else 1.0 for part in _windows(words, WINDOW_WORDS)),
        compression=max(ratios),
        least_compression=min(ratios),
        loop=_longest_loop(words, 1),
        counting_loop=_longest_loop(numbered, COUNTING_WORDS),
        character_loop=_character_loop(text),
    )


def judge_text(text: str) -> TextJudgement:
    """Return whether a text has degenerated, by the first limit that it breaks."""
    found = measure_text(text)
    verdict, reason = TextVerdict.DEGENERATE, _fault(found)
    if reason is None:
        short = found.words < MIN_WORDS or found.characters < MIN_CHARACTERS
        verdict = TextVerdict.TOO_SHORT if short else TextVerdict.HEALTHY
        reason = f"{found.words} words" if short else "varied text"
    return TextJudgement(verdict=verdict, reason=reason, measures=found)


def _fault(found: TextMeasures) -> str | None:
    if found.character_loop >= CHARACTER_LOOP:
        return f"{found.character_loop} characters repeat a few"
    if found.loop is not None:
        return f"{found.loop.covered} words repeat {found.loop.period}"
    if found.counting_loop is not None:
        return f"{found.counting_loop.covered} words repeat {found.counting_loop.period}, numbers aside"
    if found.characters < MIN_CHARACTERS:
        return None
    if found.compression > MOST_COMPRESSION:
        return f"it deflates {found.compression:.1f} times"
    if found.least_compression < LEAST_COMPRESSION and found.characters >= WINDOW_BYTES // 2:
        return f"it deflates only {found.least_compression:.2f} times, as noise does"
    if found.words < MIN_WORDS:
        return None
    if found.repeated > MOST_REPEATED:
        return f"{found.repeated:.0%} of its runs of four words came before"
    if found.distinct < FEWEST_DISTINCT and found.words >= WINDOW_WORDS // 2:
        return f"{found.distinct:.0%} of its words are distinct"
    return None


def find_markup(text: str) -> tuple[Leak, ...]:
    """Return every mark of a model's own language in a text, by place. Case counts: these marks are single tokens."""
    leaks = (Leak(kind, mark, match.start()) for kind, mark in _marks() for match in re.finditer(re.escape(mark), text))
    return tuple(sorted(leaks, key=lambda leak: (leak.at, -len(leak.text))))


@lru_cache(maxsize=1)
def _marks() -> tuple[tuple[MarkupKind, str], ...]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows: list[dict[str, str]] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return tuple((MarkupKind(row["kind"]), row["text"]) for row in rows)


def _windows(whole: _Whole, size: int) -> list[_Whole]:
    """Windows that overlap by three quarters, the last one up to the end; one window where the whole is no longer."""
    starts = [*range(0, max(1, len(whole) - size), size // 4), max(0, len(whole) - size)]
    return [whole[start : start + size] for start in starts]


def _repeated(words: Sequence[str]) -> float:
    runs = [tuple(words[start : start + 4]) for start in range(len(words) - 3)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def _longest_loop(words: Sequence[str], least_distinct: int) -> Loop | None:
    """The stretch that covers most words, the shortest period first; `least_distinct` words in it hold no number."""
    best: Loop | None = None
    for period in range(least_distinct, min(_LONGEST_PERIOD, len(words) // (LOOP_TIMES + 1)) + 1):
        run, end = _longest_match(words, period)
        if run < LOOP_TIMES * period or run + period < LOOP_WORDS:
            continue
        said = {word for word in words[end - period : end] if "#" not in word}
        if len(said) >= least_distinct and (best is None or run + period > best.covered + best.period):
            best = Loop(period, run + period)
    return best


def _character_loop(text: str) -> int:
    periods = range(1, _LONGEST_CHARACTER_PERIOD + 1)
    return min(len(text), max(_longest_match(text, period)[0] + period for period in periods))


def _longest_match(whole: Sequence[object], period: int) -> tuple[int, int]:
    """Length and end of the longest stretch in which everything equals what stands `period` before."""
    longest = run = end = 0
    for index, (one, other) in enumerate(zip(whole, whole[period:], strict=False)):
        run = run + 1 if one == other else 0
        if run > longest:
            longest, end = run, index + period + 1
    return longest, end
