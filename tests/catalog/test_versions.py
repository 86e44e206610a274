"""Comparing versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.catalog.versions import in_versions, parse_versions, version_key

numbers = st.lists(st.integers(min_value=0, max_value=99), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("version", "text", "inside"),
    [
        ("0.33.0", "all", True),
        ("0.33.0", ">=0.29,<0.33", False),
        ("0.29.0", ">=0.29,<0.33", True),
        ("0.29", "==0.29.0", True),
        ("0.9", "<0.10", True),
        ("b10236", ">=b10236", True),
        ("b9999", ">=b10236", False),
        ("xllamacpp-2026.10.11549", ">=b10236", False),
        ("b11434", "<0.33", False),
    ],
)
def test_ranges(version: str, text: str, inside: bool) -> None:
    assert in_versions(version, text) is inside


@pytest.mark.parametrize("text", ["", "0.33", "since 0.33", ">=0.27 <0.33", "~=0.33"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="range of versions"):
        parse_versions(text)


@given(numbers, numbers)
def test_exactly_one_of_less_equal_greater(left: list[int], right: list[int]) -> None:
    a, b = (".".join(map(str, part)) for part in (left, right))
    assert [in_versions(a, f"{sign}{b}") for sign in ("<", "==", ">")].count(True) == 1


@given(numbers)
def test_trailing_noughts_do_not_matter(parts: list[int]) -> None:
    text = ".".join(map(str, parts))
    assert version_key(text) == version_key(text + ".0")
