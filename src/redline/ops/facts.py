"""What redline knows of a server that it started itself, for the checks: its log, its drafter, the memory left."""

from pathlib import Path
from typing import Final

from redline.catalog.types import Model
from redline.checks.check import LogRule
from redline.engine.signatures import signature_book
from redline.launch.logfile import tail
from redline.launch.state import LOG_FILE, ServerRecord
from redline.ops.verify import Facts
from redline.rig.detect import available_memory_bytes
from redline.settings import Settings, parse_float

_LOG_LINES: Final = 2000


def patience_of(settings: Settings) -> float:
    """Return the factor on the checks' time limits.

    Raises:
        UsageError: CHECK_PATIENCE is not a number of its range.
    """
    given = settings.layers.get("CHECK_PATIENCE")
    return 1.0 if given is None else parse_float(given, "CHECK_PATIENCE", minimum=0.05, maximum=100).value


def server_facts(
    settings: Settings, record: ServerRecord, folder: Path, model: Model | None, *, drafter: str, depth: int
) -> Facts:
    """Return the facts; the texts of the engine's known faults must not stand in the log of a server that works."""
    plain = (
        item
        for item in signature_book().of_engine(record.engine)
        if item.pattern is None and item.after is None and item.before is None and not item.at_end
    )
    return Facts(
        model=model,
        drafting=depth > 0,
        draft_method=drafter,
        draft_depth=depth,
        log_lines=lambda: tail(folder / LOG_FILE, _LOG_LINES),
        log_rules=tuple(LogRule(item.text, wanted=False, meaning=item.meaning) for item in plain),
        free_bytes=available_memory_bytes,
        patience=patience_of(settings),
    )
