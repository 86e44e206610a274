"""Texts as broken models write them, stuck or senseless, and healthy ones that repeat themselves by their nature.

With the genres of `corpus` they are what a verdict on degeneration is tried on. Knows no verdict.
"""

import json
import random
from enum import StrEnum

from redline.workload.corpus import Corpus, Genre


class Breakage(StrEnum):
    """How a text is broken."""

    WORD_LOOP = "word_loop"
    PHRASE_LOOP = "phrase_loop"
    SENTENCE_LOOP = "sentence_loop"
    PARAGRAPH_LOOP = "paragraph_loop"
    LINE_LOOP = "line_loop"
    COUNTING_LOOP = "counting_loop"
    LATE_LOOP = "late_loop"
    CHARACTER_LOOP = "character_loop"
    FEW_WORDS = "few_words"
    CHARACTER_SOUP = "character_soup"


def broken_text(breakage: Breakage, seed: int, words: int = 400) -> str:
    """Return a text of about `words` words that breaks as told, healthy before where a model would be."""
    generator = random.Random(f"broken/{breakage.value}/{seed}")
    report = Corpus(f"broken/{seed}", (Genre.REPORT,)).words(words)
    sentences = [sentence.strip() + "." for sentence in report.replace("\n", " ").split(". ")]
    vocabulary = report.split()
    match breakage:
        case Breakage.WORD_LOOP:
            return _then(report, 0.2, f"{generator.choice(vocabulary)} ", words)
        case Breakage.PHRASE_LOOP:
            return _then(report, 0.3, " ".join(generator.sample(vocabulary, 5)) + " ", words)
        case Breakage.SENTENCE_LOOP:
            return _then(report, 0.4, generator.choice(sentences) + " ", words)
        case Breakage.PARAGRAPH_LOOP:
            return _then(report, 0.3, " ".join(sentences[1:4]) + "\n\n", words)
        case Breakage.LINE_LOOP:
            return _then(report, 0.2, f"\n- {generator.choice(sentences)}", words)
        case Breakage.COUNTING_LOOP:
            line = generator.choice(sentences)
            return "\n".join(f"{number}. {line}" for number in range(1, 2 + words // len(line.split())))
        case Breakage.LATE_LOOP:
            return _then(report, 0.75, generator.choice(sentences) + " ", words)
        case Breakage.CHARACTER_LOOP:
            return _then(report, 0.3, generator.choice(["!", "-", "\n", "0", "...", "ha"]) * 6, words)
        case Breakage.FEW_WORDS:
            return " ".join(generator.choices(vocabulary[:12], k=words))
        case Breakage.CHARACTER_SOUP:
            letters = "".join(chr(code) for code in (*range(33, 127), *range(0x3B1, 0x3C9), *range(0x4E00, 0x4E60)))
            return "".join(generator.choices(letters, k=words * 5))


def _then(report: str, healthy: float, loop: str, words: int) -> str:
    """The beginning of a healthy text, then a loop up to the length of the whole."""
    start = " ".join(report.split(" ")[: int(words * healthy)])
    return start + " " + loop * max(6, (len(report) - len(start)) // len(loop))


class Monotony(StrEnum):
    """How a healthy text repeats itself."""

    JSON_LIST = "json_list"
    TIMES_TABLE = "times_table"
    TEST_CASES = "test_cases"
    NUMBERED_LIST = "numbered_list"
    REFRAIN = "refrain"
    COUNTING = "counting"


def monotonous_text(monotony: Monotony, seed: int) -> str:
    """Return a healthy text of one to three thousand characters that says like things again and again."""
    generator = random.Random(f"monotonous/{monotony.value}/{seed}")
    nouns = generator.sample(
        ["tent", "map", "rope", "stove", "lamp", "boots", "gloves", "knife", "kettle", "blanket"], 10
    )
    match monotony:
        case Monotony.JSON_LIST:
            rows = [
                {
                    "id": index,
                    "name": generator.choice(nouns),
                    "price": generator.randint(1, 99),
                    "sold": index % 3 == 0,
                }
                for index in range(25)
            ]
            return json.dumps(rows, indent=2)
        case Monotony.TIMES_TABLE:
            first = generator.randint(2, 40)
            return "\n".join(f"{a} x {b} = {a * b}" for a in range(first, first + 8) for b in range(1, 11))
        case Monotony.TEST_CASES:
            numbers = [(generator.randint(0, 99), generator.randint(0, 99)) for _ in range(25)]
            return "\n\n".join(f"def test_add_{a}_{b}():\n    assert add({a}, {b}) == {a + b}" for a, b in numbers)
        case Monotony.NUMBERED_LIST:
            lines = enumerate(nouns, start=1)
            return "\n".join(
                f"{at}. **{noun.title()}**: check the {noun} before you leave, and keep the {noun} dry."
                for at, noun in lines
            )
        case Monotony.REFRAIN:
            return "\n\n".join(
                f"Over the hill comes a man with a {noun},\nsinging hey, the wind, and ho, the rain,\n"
                f"and what will he give for his {noun}?\nSinging hey, the wind, and ho, the rain."
                for noun in nouns
            )
        case Monotony.COUNTING:
            return "\n".join(str(number) for number in range(seed, seed + 300))
