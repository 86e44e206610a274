"""The verdict on degeneration and the search for leaked marks, on texts whose state is known."""

import sysconfig
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.checks.measures import MarkupKind, TextVerdict, find_markup, judge_text, measure_text
from redline.workload.broken import Breakage, Monotony, broken_text, monotonous_text
from redline.workload.corpus import Corpus, Genre


@pytest.mark.parametrize("breakage", list(Breakage))
def test_every_broken_text_is_degenerate(breakage: Breakage) -> None:
    for seed in range(10):
        judgement = judge_text(broken_text(breakage, seed))
        assert judgement.verdict is TextVerdict.DEGENERATE, (seed, judgement)


@pytest.mark.parametrize("genre", list(Genre))
def test_no_generated_text_is(genre: Genre) -> None:
    for seed in range(5):
        judgement = judge_text(Corpus(f"measures/{seed}", (genre,)).words(400))
        assert judgement.verdict is TextVerdict.HEALTHY, (seed, judgement)


@pytest.mark.parametrize("monotony", list(Monotony))
def test_what_repeats_by_its_nature_is_healthy(monotony: Monotony) -> None:
    for seed in range(10):
        judgement = judge_text(monotonous_text(monotony, seed))
        assert judgement.verdict is TextVerdict.HEALTHY, (seed, judgement)


@pytest.mark.parametrize("module", ["argparse", "calendar", "heapq", "stat", "tarfile", "textwrap"])
def test_real_code_is_healthy(module: str) -> None:
    source = (Path(sysconfig.get_path("stdlib")) / f"{module}.py").read_text(encoding="utf-8")
    for start in range(0, len(source), 4000):
        assert judge_text(source[start : start + 4000]).verdict is not TextVerdict.DEGENERATE, source[
            start : start + 4000
        ]


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=39))
def test_a_few_characters_are_too_short_to_say(text: str) -> None:
    assert judge_text(text).verdict is TextVerdict.TOO_SHORT


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=600))
def test_any_text_can_be_measured(text: str) -> None:
    found = measure_text(text)
    assert found.characters == len(text)
    assert 0 <= found.repeated <= 1
    assert 0 < found.distinct <= 1
    assert found.least_compression <= found.compression


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["ash", "bell", "cart", "dune", "elm", "fern", "gate"]), min_size=1, max_size=20))
def test_a_loop_of_any_words_is_found_with_its_period(words: list[str]) -> None:
    times = max(6, 60 // len(words) + 1)
    loop = measure_text(" ".join(words * times)).loop
    assert loop is not None
    assert len(words) % loop.period == 0 or words == words[: loop.period] * (len(words) // loop.period)
    assert loop.covered == len(words) * times


def test_the_reason_names_the_loop() -> None:
    judgement = judge_text("It went well at first. " + "The gate was shut and nobody came. " * 12)
    assert judgement.reason == "84 words repeat 7"


def test_the_same_answer_twice_is_no_loop() -> None:
    text = Corpus("twice", (Genre.REPORT,)).words(120)
    assert judge_text(f"{text}\n\n{text}").verdict is TextVerdict.HEALTHY


@pytest.mark.parametrize(
    ("text", "kind", "mark"),
    [
        ('Sure. <tool_call>{"name": "get_weather"}</tool_call>', MarkupKind.TOOL, "<tool_call>"),
        ("<function=get_weather><parameter=city>Paris", MarkupKind.TOOL, "<function="),
        ('[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}', MarkupKind.TOOL, "[TOOL_CALLS]"),
        ("<\uff5ctool\u2581calls\u2581begin\uff5c>", MarkupKind.TOOL, "<\uff5ctool\u2581calls\u2581begin\uff5c>"),
        ("I should answer.</think>Paris.", MarkupKind.REASONING, "</think>"),
        ("Paris.<|im_end|>\n<|im_start|>user", MarkupKind.CONTROL, "<|im_end|>"),
    ],
)
def test_leaked_marks_are_found(text: str, kind: MarkupKind, mark: str) -> None:
    leaks = find_markup(text)
    assert (leaks[0].kind, leaks[0].text) == (kind, mark)
    assert text[leaks[0].at :].startswith(mark)
    assert [leak.at for leak in leaks] == sorted(leak.at for leak in leaks)


@pytest.mark.parametrize(
    "text",
    [
        "If a < b and c > d then think again about the tool call.",
        "Use the <b>bold</b> tag, or List<String>, or vector<function> in C++.",
        "def f(x): return x | 1  # |im_start|",
        Corpus("no marks").words(3000),
    ],
)
def test_ordinary_text_has_no_marks(text: str) -> None:
    assert find_markup(text) == ()
