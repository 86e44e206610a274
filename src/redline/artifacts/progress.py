"""What a long file operation says while it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileProgress:
    """Bytes done of a step; `total_bytes` is None while it is unknown."""

    artifact: str
    step: str
    done_bytes: int
    total_bytes: int | None


Report = Callable[[FileProgress], None]


def ignore(_progress: FileProgress) -> None:
    """Report nothing."""
