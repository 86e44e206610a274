"""Fitting a text to a number of tokens, with tokenizers of different kinds and moods."""

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.workload.corpus import mixed_corpus
from redline.workload.fit import fit_text, fit_text_async
from redline.workload.salt import salted


def build(words: int) -> str:
    return salted("fit", mixed_corpus("fit").words(words))


@settings(max_examples=30, deadline=None)
# From 2,000 on: below, a single word of hexadecimal digits can be more than the hundredth that is allowed.
@given(st.integers(2000, 40_000), st.integers(2, 9))
def test_within_one_percent_and_never_above(target: int, width: int) -> None:
    pattern = re.compile(rf"\w{{1,{width}}}|[^\w\s]|\n")
    fitted = fit_text(build, lambda text: len(pattern.findall(text)), target)
    assert 0.99 * target <= fitted.tokens <= target
    assert fitted.tokens == len(pattern.findall(fitted.text))
    assert fitted.counts <= 8


def test_a_template_around_the_text_is_counted_too() -> None:
    fitted = fit_text(build, lambda text: 300 + len(text) // 4, 1000)
    assert 990 <= 300 + len(fitted.text) // 4 <= 1000


def test_an_uneven_counter_is_still_met() -> None:
    fitted = fit_text(build, lambda text: int(len(text.split()) ** 1.3), 20_000)
    assert 19_800 <= fitted.tokens <= 20_000


def test_counting_may_be_awaited() -> None:
    async def count(text: str) -> int:
        await asyncio.sleep(0)
        return len(text) // 4

    plain = fit_text(build, lambda text: len(text) // 4, 5000)
    assert asyncio.run(fit_text_async(build, count, 5000)) == plain


def test_a_target_that_cannot_be_met_is_said() -> None:
    with pytest.raises(ValueError, match="no text of 99 to 100 tokens"):
        fit_text(build, lambda text: 300 + len(text) // 4, 100)
    with pytest.raises(ValueError, match="no text of"):
        fit_text(build, lambda text: 64 * (len(text.split()) // 10), 1000)


def test_a_prompt_begins_with_its_salt() -> None:
    one, other = salted("a", "text"), salted("b", "text")
    assert one[0] != other[0] or one[:4] != other[:4]
    assert one.endswith("\ntext")
    assert salted("a", "text") == one
    assert len({salted(str(number), "")[:6] for number in range(500)}) == 500
