"""Versions and ranges."""

import pytest

from redline.plan.versions import release_numbers, version_in


@pytest.mark.parametrize(
    ("version", "spec", "inside"),
    [
        ("0.33.0", ">=0.32,<0.34", True),
        ("0.34", ">=0.32,<0.34", False),
        ("0.20.1rc1.dev16+g7a1eb8ac2", ">=0.20,<0.28", True),
        ("v0.27.1", ">=0.27", True),
        ("0.27", "==0.27.0", True),
        ("0.3", ">0.29", False),
        ("nightly", ">=0", False),
        ("", "<1", False),
    ],
)
def test_ranges(version: str, spec: str, inside: bool) -> None:
    assert version_in(version, spec) is inside


def test_a_wrong_range_is_a_fault() -> None:
    with pytest.raises(ValueError, match="range"):
        version_in("0.33.0", "about 0.33")


def test_numbers() -> None:
    assert release_numbers("b11434") is None
    assert release_numbers("0.1.dev19754+g3a09") == (0, 1)
