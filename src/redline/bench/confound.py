"""May two arms be compared, and what differs between them beside what is asked about?

Tiers differ in weights, drafter, depth and cache type: that is the question. Anything else that differs would be
measured with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# What a tier is: a comparison of tiers is a comparison of these.
THE_QUESTION: Final = frozenset(
    {"artifact", "drafter", "spec_n", "lookup_key_tokens", "lookup_min_hits", "kv_cache_dtype"}
)
# What says nothing about speed.
_IDLE: Final = frozenset({"status", "status_note", "port", "bind_host", "served_name"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field in which two arms differ, with both values."""

    name: str
    a: Any
    b: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.a} against {self.b}"


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the fields in which two arms' conditions differ, those that mean nothing for speed left out."""
    names = sorted({*a, *b} - _IDLE)
    return tuple(Difference(name=name, a=a.get(name), b=b.get(name)) for name in names if a.get(name) != b.get(name))


def confounding(found: tuple[Difference, ...], allowed: frozenset[str] = frozenset()) -> tuple[Difference, ...]:
    """Return the differences that are neither the question nor allowed by name."""
    return tuple(item for item in found if item.name not in THE_QUESTION | allowed)
