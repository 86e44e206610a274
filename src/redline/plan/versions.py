"""Whether a version lies in a range such as `>=0.32,<0.34`. Knows numbers and dots; suffixes of builds do not count."""

import re
from typing import Final

_NUMBERS: Final = re.compile(r"^v?(\d+(?:\.\d+)*)")
_CLAUSE: Final = re.compile(r"^(>=|<=|==|>|<)\s*(\d+(?:\.\d+)*)$")


def release_numbers(version: str) -> tuple[int, ...] | None:
    """Return the leading numbers of a version: '0.20.1rc1.dev16+g7a1eb8ac2' -> (0, 20, 1); None when it has none."""
    found = _NUMBERS.match(version.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def version_in(version: str, spec: str) -> bool:
    """Whether every clause of `spec` holds. A version without numbers is in no range.

    Raises:
        ValueError: `spec` is not a list of clauses.
    """
    numbers = release_numbers(version)
    clauses = [_CLAUSE.match(part.strip()) for part in spec.split(",")]
    if not all(clauses):
        raise ValueError(f"{spec!r} is not a version range such as '>=0.32,<0.34'")
    return numbers is not None and all(_holds(numbers, clause) for clause in clauses if clause)


def _holds(numbers: tuple[int, ...], clause: re.Match[str]) -> bool:
    bound = tuple(int(part) for part in clause.group(2).split("."))
    width = max(len(numbers), len(bound))
    mine = numbers + (0,) * (width - len(numbers))
    other = bound + (0,) * (width - len(bound))
    return {
        ">=": mine >= other,
        "<=": mine <= other,
        "==": mine == other,
        ">": mine > other,
        "<": mine < other,
    }[clause.group(1)]
