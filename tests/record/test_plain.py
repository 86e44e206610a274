"""Hostile text is made harmless: no escapes, no invisible marks, bounded."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.record.plain import plain_line, plain_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("a\x00b\x07c", "abc"),
        ("user\u202etxt.exe", "usertxt.exe"),  # right-to-left override, CVE-2021-42574
        ("zero\u200bwidth", "zerowidth"),
        ("\r\n10 %\r20 %", "\n10 %\n20 %"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_escapes_and_marks_go(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_long_text_is_cut_and_says_so() -> None:
    assert plain_text("x" * 50, 10) == "x" * 10 + " ... 40 more characters"
    assert plain_text("x" * 10, 10) == "x" * 10


def test_line_has_no_line_ends() -> None:
    assert plain_line(" a\n\tb  c ") == "a b c"


@given(st.text(max_size=200), st.integers(1, 50))
def test_nothing_invisible_is_left_and_the_bound_holds(text: str, limit: int) -> None:
    shown = plain_text(text, limit)
    assert len(shown) <= limit + len(" ... 200 more characters")
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn") for c in shown)
