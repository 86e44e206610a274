"""Comparing engine versions: `0.33.0`, `b11434`, `xllamacpp-2026.10.11549`. Knows numbers in names, nothing else."""

import operator
import re
from collections.abc import Callable
from typing import Any, Final

_COMPARISON: Final = re.compile(r"(<=|>=|==|<|>)\s*([A-Za-z0-9.\-]+)$")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version in order, trailing zeros left out, so that 0.29 and 0.29.0 are one."""
    numbers = [int(part) for part in re.findall(r"\d+", version)]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def parse_versions(text: str) -> tuple[tuple[str, str], ...]:
    """Return the comparisons of a range; none of them for `all`.

    Raises:
        ValueError: neither `all` nor comparisons joined by commas.
    """
    if text.strip() == "all":
        return ()
    found = []
    for part in text.split(","):
        match = _COMPARISON.match(part.strip())
        if match is None:
            raise ValueError(f"{text!r} is no range of versions: write all, or comparisons such as >=0.27,<0.33")
        found.append((match[1], match[2]))
    return tuple(found)


def in_versions(version: str, text: str) -> bool:
    """Whether a version lies in a range. A bound of another scheme of numbering (`b11434` and `0.33`) holds none."""
    return all(
        _scheme(version) == _scheme(bound) and _OPERATORS[sign](version_key(version), version_key(bound))
        for sign, bound in parse_versions(text)
    )


def _scheme(version: str) -> str:
    return version[: re.search(r"\d", version + "0").start()]  # type: ignore[union-attr]  # the 0 is always found
