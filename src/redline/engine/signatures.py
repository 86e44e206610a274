"""Failure signatures as data: `data/signatures.yaml`, read once. Knows their shape, not how a log is searched."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

_DATA: Final = Path(__file__).parent / "data" / "signatures.yaml"
ANY: Final = "any"


class SignatureKind(StrEnum):
    """How it is known that an engine writes this."""

    ENGINE_SOURCE = "engine-source"
    CAPTURED = "captured"
    ISSUE = "issue"
    UNPROVEN = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One fault: how a log gives it away, what it means, what to do. The file says what each field is for."""

    id: str
    engine: str
    versions: str
    text: str
    meaning: str
    remedies: tuple[tuple[str, ...], ...]
    kind: SignatureKind
    source: str
    pattern: re.Pattern[str] | None = None
    after: str | None = None
    before: str | None = None
    at_end: bool = False

    def concerns(self, engine: str | None) -> bool:
        """Whether an engine can have it; without an engine, anything can."""
        return engine is None or self.engine in (ANY, engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A part of a line that says something about a boot as a whole."""

    engine: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogValue:
    """A value that a log states, by the name that remedies use."""

    engine: str
    name: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureBook:
    """The whole file. `signatures` are in order of precedence."""

    signatures: tuple[Signature, ...]
    log_values: tuple[LogValue, ...]
    new_boot: tuple[Marker, ...]
    ready: tuple[Marker, ...]
    harmless: tuple[Marker, ...]

    def of_engine(self, engine: str | None) -> tuple[Signature, ...]:
        """Return the signatures that an engine can have."""
        return tuple(item for item in self.signatures if item.concerns(engine))


@cache
def signature_book() -> SignatureBook:
    """Return all signatures."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: dict[str, Any] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return SignatureBook(
        signatures=tuple(_signature(item) for item in data["signatures"]),
        log_values=tuple(LogValue(**{**item, "pattern": re.compile(item["pattern"])}) for item in data["log_values"]),
        new_boot=tuple(Marker(**item) for item in data["new_boot"]),
        ready=tuple(Marker(**item) for item in data["ready"]),
        harmless=tuple(Marker(**item) for item in data["harmless"]),
    )


def _signature(item: dict[str, Any]) -> Signature:
    remedies = tuple(tuple(entry) if isinstance(entry, list) else (entry,) for entry in item["remedies"])
    pattern = re.compile(item["pattern"]) if "pattern" in item else None
    return Signature(**{**item, "remedies": remedies, "pattern": pattern, "kind": SignatureKind(item["kind"])})


def boot_markers_of(engine: str) -> tuple[str, ...]:
    """Return the texts of which an engine prints each at most once in a life."""
    return tuple(marker.text for marker in signature_book().new_boot if marker.engine == engine)
