"""The generated corpus: new words all the way, the same for a seed, every genre in turn."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.workload.corpus import MIXED, Corpus, Genre, mixed_corpus, repeated_parts, unique_share

HUNDRED_THOUSAND = mixed_corpus("tests").words(100_000)


def test_a_hundred_thousand_words_hardly_repeat_themselves() -> None:
    assert len(HUNDRED_THOUSAND.split()) == 100_000
    assert unique_share(HUNDRED_THOUSAND) > 0.98
    assert repeated_parts(HUNDRED_THOUSAND) == 0


def test_the_measures_see_repetition_where_there_is_some() -> None:
    assert unique_share("one two three four five six seven eight " * 100) < 0.02
    assert repeated_parts("a b\n\nc d\n\na b") == 1


def test_every_genre_of_the_mix_is_there() -> None:
    for trace in (
        r"^\d{4}-\d\d-\d\dT",
        r"^\|---",
        r"^def |^class ",
        r"^SELECT ",
        r"^Dear ",
        r"^- ",
        r'^\{"',
        r"^[A-Z]\w+: ",
    ):
        assert re.search(trace, HUNDRED_THOUSAND, re.MULTILINE), trace


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=8), st.integers(1, 3000), st.integers(1, 3000))
def test_a_longer_text_begins_with_a_shorter_one(seed: str, first: int, second: int) -> None:
    shorter, longer = sorted((first, second))
    corpus = Corpus(seed)
    text = corpus.words(longer)
    assert len(text.split()) == longer
    assert text.startswith(Corpus(seed).words(shorter))
    assert corpus.words(shorter) == Corpus(seed).words(shorter)


def test_seeds_share_next_to_nothing() -> None:
    texts = [Corpus(f"session/{number}").words(20_000).split() for number in range(3)]
    runs = [{tuple(words[start : start + 8]) for start in range(len(words) - 7)} for words in texts]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert len(runs[one] & runs[other]) / len(runs[one]) < 0.01


@settings(max_examples=20, deadline=None)
@given(st.integers(60, 20_000), st.sampled_from(Genre))
def test_characters_are_counted_to_a_word(count: int, genre: Genre) -> None:
    text = Corpus("size", (genre,)).characters(count)
    assert count - 80 < len(text) <= count


def test_records_are_json_or_balanced_markup() -> None:
    for line in Corpus("records", (Genre.RECORDS,)).parts(40).splitlines():
        if line.startswith("{"):
            assert isinstance(json.loads(line), dict)
        elif line:
            opened, closed = re.findall(r"<([a-z]+)[ >]", line), re.findall(r"</([a-z]+)>", line)
            assert sorted(opened) == sorted(closed)


def test_so_many_parts_are_so_many_listings() -> None:
    text = Corpus("parts", (Genre.LISTING,)).parts(80)
    starts = re.findall(r"^(?:def|class|static|SELECT|export|\[\w+\.\w+\])", text, re.MULTILINE)
    assert len(starts) == 80


@pytest.mark.parametrize("genre", MIXED)
def test_no_slot_is_left_open(genre: Genre) -> None:
    text = Corpus("slots", (genre,)).words(5000)
    assert not re.search(r"\{[a-z_]+=|\{=|\{\d+-\d+\}|\{#\d\}|\ba [aeiou]", text)
