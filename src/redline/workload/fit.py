"""A text brought to a number of tokens by asking whoever can count them, a few times.

The asking is left to the caller: `fitting` is a generator that yields texts and takes counts, so that a server's
tokenizer can be asked with or without `await`. Knows neither server nor tokenizer.
"""

import math
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Final

_FIRST_TOKENS_A_WORD: Final = 1.8
_MOST_COUNTS: Final = 24


@dataclass(frozen=True, slots=True)
class FittedText:
    """A text of `tokens` tokens, which took `counts` countings; `words` is what its builder was given."""

    text: str
    tokens: int
    words: int
    counts: int


Build = Callable[[int], str]


def fitting(build: Build, target_tokens: int, tolerance: float = 0.01) -> Generator[str, int, FittedText]:
    """Yield texts to be counted, take each count, and return the text within `tolerance` below the target.

    `build` makes a text of so many words; more words must make more tokens. The result never exceeds the target, so
    that a rung just below a context's end stays below it.

    Raises:
        ValueError: even one word is too much, or no number of words comes as close as asked: at small targets one
            word is more than the tolerance.
    """
    lowest = math.ceil(target_tokens * (1 - tolerance))
    low, high = 0, 0  # the most words known to be too few, the fewest known to be too many (0: none yet)
    words = max(1, round(target_tokens / _FIRST_TOKENS_A_WORD))
    aim, tokens = (lowest + target_tokens) / 2, 0
    for counts in range(1, _MOST_COUNTS + 1):
        text = build(words)
        tokens = yield text
        if lowest <= tokens <= target_tokens:
            return FittedText(text, tokens, words, counts)
        if tokens < lowest:
            low = words
        else:
            high = words
        if high and high - low <= 1:
            break
        guess = round(words * aim / max(1, tokens))
        # The ratio settles it in two or three steps; where a text is uneven, halving what is left always does.
        if counts > _MOST_COUNTS // 2 and high:
            guess = (low + high) // 2
        words = max(low + 1, min(guess, high - 1 if high else guess))
    raise ValueError(f"no text of {lowest} to {target_tokens} tokens: the nearest had {tokens}")


def fit_text(
    build: Build, count_tokens: Callable[[str], int], target_tokens: int, tolerance: float = 0.01
) -> FittedText:
    """Return the fitted text, counting with a plain function.

    Raises:
        ValueError: as `fitting`.
    """
    steps = fitting(build, target_tokens, tolerance)
    text = next(steps)
    while True:
        try:
            text = steps.send(count_tokens(text))
        except StopIteration as done:
            return _fitted(done)


async def fit_text_async(
    build: Build, count_tokens: Callable[[str], Awaitable[int]], target_tokens: int, tolerance: float = 0.01
) -> FittedText:
    """Return the fitted text, counting with a function that is awaited.

    Raises:
        ValueError: as `fitting`.
    """
    steps = fitting(build, target_tokens, tolerance)
    text = next(steps)
    while True:
        try:
            text = steps.send(await count_tokens(text))
        except StopIteration as done:
            return _fitted(done)


def _fitted(done: StopIteration) -> FittedText:
    assert isinstance(done.value, FittedText)
    return done.value
