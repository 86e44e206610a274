"""What redline knows of a server that it started itself, for the checks: its log, its drafter, the memory left."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from redline.catalog.types import Model
from redline.checks.check import LogRule
from redline.checks.reach import log_rules
from redline.engine.signatures import boot_markers_of
from redline.launch.logfile import head, tail
from redline.launch.plan_file import read_plan
from redline.launch.state import LOG_FILE, ServerRecord
from redline.ops.verify import Facts
from redline.probe.gpu import least_gpu_free_bytes
from redline.probe.memory import ServerMemory
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
    """Return the facts; what its log must hold is asked only where the log still begins with the boot."""
    plan = read_plan(folder)
    process = record.engine_process
    return Facts(
        model=model,
        drafting=depth > 0,
        draft_method=drafter,
        draft_depth=depth,
        log_lines=lambda: (*head(folder / LOG_FILE, _LOG_LINES), *tail(folder / LOG_FILE, _LOG_LINES)),
        log_rules=_rules(record.engine, drafter if depth else "", head(folder / LOG_FILE, _LOG_LINES)),
        free_bytes=available_memory_bytes,
        gpu_free_bytes=None if plan is None or plan.gpus == () else partial(least_gpu_free_bytes, plan.gpus),
        swapped_bytes=ServerMemory(record.url, process.pid if process else None).swapped,
        patience=patience_of(settings),
    )


def _rules(engine: str, drafter: str, start: Sequence[str]) -> tuple[LogRule, ...]:
    whole = any(marker in line for marker in boot_markers_of(engine) for line in start)
    return tuple(rule for rule in log_rules(engine, drafter) if whole or not rule.wanted)
