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
    aim = (lowest + target_tokens) / 2
    # Words and tokens of the longest text that is too short, and of the shortest that is too long (0: none yet).
    low, high = (0, 0), (0, 0)
    words, tokens = max(1, round(target_tokens / _FIRST_TOKENS_A_WORD)), 0
    for counts in range(1, _MOST_COUNTS + 1):
        text = build(words)
        tokens = yield text
        if lowest <= tokens <= target_tokens:
            return FittedText(text, tokens, words, counts)
        if tokens < lowest:
            rate = (tokens - low[1]) / (words - low[0])
            low = (words, tokens)
        else:
            rate = tokens / words
            high = (words, tokens)
        if high[0] and high[0] - low[0] <= 1:
            break
        words = _next_guess(low, high, aim, rate, halve=counts > _MOST_COUNTS // 3)
    raise ValueError(f"no text of {lowest} to {target_tokens} tokens: the nearest had {tokens}")


def _next_guess(low: tuple[int, int], high: tuple[int, int], aim: float, rate: float, *, halve: bool) -> int:
    """Between the two ends by the straight line through them, or by halves; beyond the lower one by the last rate."""
    if not high[0]:
        return low[0] + max(1, round((aim - low[1]) / max(rate, 0.01)))
    if halve:
        return (low[0] + high[0]) // 2
    guess = low[0] + round((aim - low[1]) / max(1, high[1] - low[1]) * (high[0] - low[0]))
    return max(low[0] + 1, min(guess, high[0] - 1))


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
