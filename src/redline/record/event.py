"""The envelope around every recorded fact, and the register of payloads that rooms declare.

A payload is a frozen dataclass. Its room registers it under a kind such as `check.result`; the kind and the
version are what a reader goes by, so renaming the class changes nothing on disk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")

EVENT_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Envelope:
    """One line of `events.jsonl`. `mono_ns` orders events of one machine across clock changes."""

    schema_version: int
    seq: int
    time: str
    mono_ns: int
    kind: str
    payload_version: int
    payload: Any


_TYPES: dict[str, tuple[type, int]] = {}
_KINDS: dict[type, tuple[str, int]] = {}


def payload(kind: str, version: int = 1) -> Callable[[type[T]], type[T]]:
    """Register a frozen dataclass as the payload of `kind`.

    Raises:
        ValueError: the kind is taken by another class.
    """

    def register(cls: type[T]) -> type[T]:
        taken = _TYPES.get(kind)
        if taken and taken[0].__qualname__ != cls.__qualname__:
            raise ValueError(f"payload kind {kind} is registered by {taken[0].__qualname__}")
        _TYPES[kind] = (cls, version)
        _KINDS[cls] = (kind, version)
        return cls

    return register


def kind_of(value: object) -> tuple[str, int]:
    """Return the registered kind and version of a payload.

    Raises:
        KeyError: its class was never registered.
    """
    return _KINDS[type(value)]


def payload_type(kind: str) -> type | None:
    """Return the class registered for a kind, or None where no room of this version declares it."""
    found = _TYPES.get(kind)
    return found[0] if found else None


def registered_kinds() -> dict[str, tuple[type, int]]:
    """Return every declared kind with its class and version, for the published schema."""
    return dict(_TYPES)
