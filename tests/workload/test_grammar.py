"""Slots: what they draw, what they remember, and what is refused when a grammar is read."""

import random

import pytest

from redline.workload import grammar
from redline.workload.grammar import Grammar, load_grammar


def line(form: str, **lists: list[str]) -> str:
    return Grammar({"it": [form], **lists}).line("it", 0, random.Random(1))


def test_what_slots_give() -> None:
    assert line("{word} {Word}", word=["mast"]) == "mast Mast"
    assert line("{a=word} {=a}", word=[f"w{number}" for number in range(50)]).split()[0::1].count("w") == 0
    first, second = line("{a=word} {=a}", word=[f"w{number}" for number in range(50)]).split()
    assert first == second
    assert line("{{x}} {#6}").startswith("{x} ")
    assert len(line("{#6}")) == 6
    assert 3 <= int(line("{3-9}")) <= 9
    assert len(line("{00-09}")) == 2


def test_a_becomes_an_before_a_vowel() -> None:
    assert line("a {thing} and a {other}", thing=["oar"], other=["mast"]) == "an oar and a mast"


def test_rows_remember_across_cells() -> None:
    found = Grammar({"row": [["{a=word}", "{=a}"]], "word": ["x", "y"]}).row("row", 5, random.Random(2))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [("it: ['{nothing}']", "names no list"), ("it: ['{9-3}']", "no range"), ("it: ['{3}']", "no range")],
)
def test_slots_that_mean_nothing_are_refused(
    text: str, message: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(grammar, "_DATA", tmp_path)
    load_grammar.cache_clear()
    with pytest.raises(ValueError, match=message):
        load_grammar("bad")
    load_grammar.cache_clear()
