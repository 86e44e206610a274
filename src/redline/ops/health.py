"""What `doctor` says of one thing: how it stands, in words, and the one thing to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """How one thing stands."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing looked at; `fix` is empty when nothing needs fixing."""

    topic: str
    health: Health
    message: str
    fix: str = ""
