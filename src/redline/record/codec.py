"""Frozen values to JSON and back. Writing costs no import; reading checks every field through pydantic."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def jsonable(value: Any) -> Any:
    """Return the JSON form of dataclasses, enums, paths, mappings and sequences; keys are the field names.

    Raises:
        TypeError: a value of another kind, so that nothing is ever written as its repr.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(jsonable(item) for item in value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: Callable[..., T], data: Any) -> T:
    """Return a dataclass read from a JSON value: strict types, unknown fields refused, all errors at once.

    Raises:
        pydantic.ValidationError (a ValueError): the data is not of that shape; `errors()` gives each path.
    """
    found: Any = adapter(kind)
    # JSON mode is the strict mode that still takes an array for a tuple and a word for an enum.
    return found.validate_json(json.dumps(data), strict=True)  # type: ignore[no-any-return]


@cache
def adapter(kind: Any) -> Any:
    """Return pydantic's adapter of a dataclass whose unknown fields are refused, at every depth."""
    from pydantic import TypeAdapter

    _forbid_unknown_fields(kind, set())
    return TypeAdapter(kind)


def _forbid_unknown_fields(kind: Any, seen: set[Any]) -> None:
    """Mark a dataclass, and every dataclass its fields mention, as taking no unknown keys."""
    if kind in seen:
        return
    seen.add(kind)
    for argument in getattr(kind, "__args__", ()):
        if isinstance(argument, type) or hasattr(argument, "__args__"):
            _forbid_unknown_fields(argument, seen)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        if "__pydantic_config__" not in vars(kind):
            kind.__pydantic_config__ = {"extra": "forbid"}  # type: ignore[attr-defined]
        for hint in get_type_hints(kind, include_extras=True).values():
            _forbid_unknown_fields(hint, seen)
