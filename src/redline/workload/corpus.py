"""Long texts that nobody wrote before: a seeded mix of reports, letters, logs, listings, tables and dialogues.

A haystack of one repeated paragraph teaches a lookup drafter the whole text, fills a prefix cache after the first
rung, and is 0.03 % unique at 380K. Here no run of eight words comes twice if it can be helped: a line that would
repeat one is drawn again. Knows no tokenizer; `fit` does the fitting.
"""

import random
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from redline.workload.grammar import Grammar, load_grammar

NGRAM: Final = 8
_DRAWS: Final = 12
_WORD: Final = re.compile(r"\S+\s*")


class Genre(StrEnum):
    """What a part of the text looks like."""

    REPORT = "report"
    LETTER = "letter"
    DIALOGUE = "dialogue"
    NOTES = "notes"
    LOG = "log"
    LISTING = "listing"
    TABLE = "table"
    RECORDS = "records"
    SEARCH = "search"
    TEST_LOG = "test_log"


# What the mixed corpus holds. The last two stand only where they are asked for: as results of tools.
MIXED: Final = tuple(genre for genre in Genre if genre not in (Genre.SEARCH, Genre.TEST_LOG))


class Corpus:
    """The endless text of one seed, of which any length can be taken; a longer one begins with every shorter one.

    What has been drawn is kept, so a second length costs only what is new.
    """

    def __init__(self, seed: str, genres: Sequence[Genre] = MIXED) -> None:
        self._writer = _Writer(load_grammar("corpus"), random.Random(f"corpus/{seed}"))
        self._genres = tuple(genres)
        self._order: list[Genre] = []
        self._words: list[str] = []
        self._length = 0
        self._ends: list[int] = []

    def words(self, count: int) -> str:
        """Return the first `count` words, split at white space, with the lines they stand in."""
        while len(self._words) < count:
            self._write()
        return "".join(self._words[:count]).rstrip()

    def characters(self, count: int) -> str:
        """Return whole words of at most `count` characters, less than one word short of it."""
        while self._length <= count:
            self._write()
        text = "".join(self._words)[: count + 1]
        return text[: max(text.rfind(" "), text.rfind("\n"), 0)].rstrip()

    def parts(self, count: int) -> str:
        """Return the first `count` parts: of a corpus of listings, so many functions or fragments each."""
        while len(self._ends) < count:
            self._write()
        return "".join(self._words[: self._ends[count - 1]]).rstrip()

    def _write(self) -> None:
        """Write one more part; every genre has its turn before one comes again."""
        if not self._order:
            self._order = list(self._genres)
            self._writer.generator.shuffle(self._order)
        part = self._writer.part(self._order.pop()) + "\n\n"
        self._words += _WORD.findall(part)
        self._length += len(part)
        self._ends.append(len(self._words))


@lru_cache(maxsize=8)
def mixed_corpus(seed: str) -> Corpus:
    """Return the mixed corpus of a seed, kept between calls since fitting takes it at several lengths."""
    return Corpus(seed)


def unique_share(text: str, size: int = NGRAM) -> float:
    """Return how many of a text's runs of `size` words are distinct, as a share; 1.0 where there is none."""
    words = text.split()
    runs = [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
    return len(set(runs)) / len(runs) if runs else 1.0


def repeated_parts(text: str) -> int:
    """Return how many paragraphs (parts between blank lines) of a text came before in it."""
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    return len(parts) - len(set(parts))


class _Writer:
    """Draws parts and remembers every run of words so far."""

    def __init__(self, grammar: Grammar, generator: random.Random) -> None:
        self.generator = generator
        self._grammar = grammar
        self._decks: dict[str, list[int]] = {}
        self._seen: set[int] = set()
        self._tail: list[str] = []

    def part(self, genre: Genre) -> str:
        """Return one document part of a genre, some ten to a hundred and fifty words."""
        match genre:
            case Genre.REPORT:
                return f"{self._line('heading')}\n\n{self._prose('report_line', 4, 9)}"
            case Genre.LETTER:
                body = self._prose("letter_line", 3, 6)
                return f"{self._line('letter_open')} {body}\n{self._line('letter_close')}"
            case Genre.DIALOGUE:
                return self._dialogue()
            case Genre.NOTES:
                return self._lines("note", 3, 6, "- ")
            case Genre.LOG:
                return self._lines("log_line", 5, 14)
            case Genre.LISTING:
                return self._line("function")
            case Genre.TABLE:
                return self._table()
            case Genre.RECORDS:
                return self._lines("record", 3, 8)
            case Genre.SEARCH:
                return self._lines("grep_line", 20, 40)
            case Genre.TEST_LOG:
                return self._lines("test_line", 20, 40)

    def _line(self, name: str) -> str:
        return self._fresh(lambda: self._grammar.line(name, self._next(name), self.generator))

    def _next(self, name: str) -> int:
        """Return which form of a list is next: none comes again before every other did."""
        if not self._decks.get(name):
            self._decks[name] = list(range(len(self._grammar.forms[name])))
            self.generator.shuffle(self._decks[name])
        return self._decks[name].pop()

    def _prose(self, name: str, fewest: int, most: int) -> str:
        return " ".join(self._line(name) for _ in range(self.generator.randint(fewest, most)))

    def _lines(self, name: str, fewest: int, most: int, mark: str = "") -> str:
        return "\n".join(mark + self._line(name) for _ in range(self.generator.randint(fewest, most)))

    def _dialogue(self) -> str:
        speakers = [self._grammar.line("first", self._next("first"), self.generator) for _ in range(2)]
        turns = self.generator.randint(5, 10)
        return "\n".join(f"{speakers[turn % 2]}: {self._line('speech')}" for turn in range(turns))

    def _table(self) -> str:
        kind = self.generator.randrange(12)
        head = self._grammar.row("table_head", kind, self.generator)
        lines = [_table_line(head), "|" + "---|" * len(head)]
        lines += [
            self._fresh(lambda: _table_line(self._grammar.row("table_row", kind, self.generator)))
            for _ in range(self.generator.randint(4, 9))
        ]
        return "\n".join(lines)

    def _fresh(self, draw: Callable[[], str]) -> str:
        """Return a drawn line whose runs of words are all new, or the last of a dozen that were not."""
        words: list[str] = []
        text, runs = "", set[int]()
        for _ in range(_DRAWS):
            text = draw()
            words = self._tail + text.split()
            runs = {hash(tuple(words[start : start + NGRAM])) for start in range(len(words) - NGRAM + 1)}
            if not runs & self._seen:
                break
        self._seen |= runs
        self._tail = words[-(NGRAM - 1) :]
        return text


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
