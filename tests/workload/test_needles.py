"""Needles: where they stand, that each question has one answer, and what answers are worth."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.workload.corpus import mixed_corpus
from redline.workload.fit import fit_text
from redline.workload.needles import (
    POSITIONS,
    Needle,
    Recall,
    build_haystack,
    codes_in,
    make_needles,
    question_all,
    score_all,
    score_recall,
)
from redline.workload.salt import salt

NEEDLES = (
    Needle("submarine", "7KQ4DF", "The access code of the submarine is 7KQ4DF.", 0.1),
    Needle("ice rink", "X9TT3PLW", "The access code of the ice rink is X9TT3PLW.", 0.5),
    Needle("opera box", "C64HJR7", "The access code of the opera box is C64HJR7.", 0.9),
)
FIRST, OTHERS = NEEDLES[0], NEEDLES[1:]


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=10), st.integers(1500, 20_000))
def test_needles_stand_where_they_should(seed: str, words: int) -> None:
    haystack = build_haystack(seed, words)
    assert haystack.text.startswith(salt(seed))
    total = len(haystack.text.split())
    for needle, position in zip(haystack.needles, POSITIONS, strict=True):
        before, after = haystack.text.split(needle.sentence)  # once, and only once
        assert len(before.split()) / total == pytest.approx(position, abs=0.02)
        assert before.endswith("\n")
        assert after.startswith("\n")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=10))
def test_codes_are_distinct_and_six_to_eight_long(seed: str) -> None:
    needles = make_needles(seed, (0.0, 0.25, 0.5, 0.75, 1.0))
    assert len({needle.code for needle in needles}) == len({needle.thing for needle in needles}) == 5
    assert all(6 <= len(needle.code) <= 8 for needle in needles)
    assert all(codes_in(needle.sentence) == {needle.code} for needle in needles)


def test_neither_things_nor_codes_stand_in_the_corpus() -> None:
    text = mixed_corpus("tests").words(100_000).lower()
    things = {needle.thing for seed in range(40) for needle in make_needles(str(seed))}
    assert len(things) == 16
    assert not [thing for thing in things if thing in text]
    assert "access code" not in text


def test_the_same_needles_at_every_length() -> None:
    assert build_haystack("s", 500).needles == build_haystack("s", 5000).needles
    assert build_haystack("s", 500) == build_haystack("s", 500)
    assert build_haystack("s", 500).needles != build_haystack("t", 500).needles


def test_a_haystack_is_fitted_by_its_words() -> None:
    fitted = fit_text(lambda words: build_haystack("fit", words).text, lambda text: len(text) // 4, 10_000)
    assert 9900 <= fitted.tokens <= 10_000
    assert all(needle.sentence in fitted.text for needle in make_needles("fit"))


@pytest.mark.parametrize(
    ("content", "finish", "recall"),
    [
        ("7KQ4DF", "stop", Recall.RECALLED),
        ("The access code of the submarine is **7kq4df**.", "stop", Recall.RECALLED),
        ("7KQ-4DF", "stop", Recall.RECALLED),
        ("It is 7KQ4DF, and furthermore", "length", Recall.RECALLED),
        ("X9TT3PLW", "stop", Recall.WRONG),
        ("7KQ4DF or X9TT3PLW or C64HJR7", "stop", Recall.WRONG),
        ("7KQ4DG", "stop", Recall.WRONG),
        ("The submarine is mentioned nowhere.", "stop", Recall.WRONG),
        ("", "stop", Recall.EMPTY),
        ("  \n", None, Recall.EMPTY),
        ("", "length", Recall.BUDGET_EXHAUSTED),
        ("Let me think about where the text mentions", "length", Recall.BUDGET_EXHAUSTED),
        ("I'm sorry, but I can't help with access codes.", "stop", Recall.REFUSED),
        ("I can\N{RIGHT SINGLE QUOTATION MARK}t share that.", "stop", Recall.REFUSED),
        ("I'm sorry for the delay: 7KQ4DF", "stop", Recall.RECALLED),
    ],
)
def test_what_an_answer_is_worth(content: str, finish: str | None, recall: Recall) -> None:
    assert score_recall(FIRST, OTHERS, content, finish_reason=finish) is recall


def test_answers_to_the_question_for_all() -> None:
    assert question_all(NEEDLES).startswith("What are the access codes of the submarine, ice rink and opera box?")
    good = "Submarine: 7KQ4DF\nIce rink: X9TT3PLW\nOpera box: C64HJR7"
    assert score_all(NEEDLES, good) == (Recall.RECALLED,) * 3
    swapped = "Submarine: X9TT3PLW\nIce rink: 7KQ4DF\nOpera box: C64HJR7"
    assert score_all(NEEDLES, swapped) == (Recall.WRONG, Recall.WRONG, Recall.RECALLED)
    assert score_all(NEEDLES, "7KQ4DF, X9TT3PLW, C64HJR7") == (Recall.RECALLED,) * 3


def test_an_answer_that_was_cut_off_excuses_only_its_end() -> None:
    cut = score_all(NEEDLES, "Submarine: none\nIce rink: X9TT", finish_reason="length")
    assert cut == (Recall.WRONG, Recall.BUDGET_EXHAUSTED, Recall.BUDGET_EXHAUSTED)
    assert score_all(NEEDLES, "Ice rink: X9TT3PLW", finish_reason="stop") == (
        Recall.EMPTY,
        Recall.RECALLED,
        Recall.EMPTY,
    )


def test_positions_outside_the_text_are_refused() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        make_needles("s", (0.5, 1.5))
    with pytest.raises(ValueError, match="at most 16"):
        make_needles("s", [number / 20 for number in range(17)])
