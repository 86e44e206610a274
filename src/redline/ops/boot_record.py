"""What a boot came to, as a record: the diagnosis of a server that did not start, and what one holds while it works."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redline.engine.diagnose import DiagnosisVerdict
from redline.launch.logfile import tail
from redline.launch.outcome import ServerFailed, ServerMemory, stage_times
from redline.launch.state import LOG_FILE, SUPERVISOR_LOG, ServerRecord, read_history
from redline.launch.stop import resident_bytes
from redline.ops.events import CheckDone, Event, SampleDone
from redline.ops.servers import diagnose_log
from redline.record.plain import plain_text
from redline.record.run import Run

_RECORDED_LOG_LINES: Final = 40


def failure_of(folder: Path, record: ServerRecord) -> ServerFailed:
    """Return why a server did not start, as a record, with the end of its log."""
    found = diagnose_log(folder, record)
    known = found.verdict is DiagnosisVerdict.KNOWN
    lines = [line for line in tail(folder / LOG_FILE, 200) if line.strip()]
    shown = lines or tail(folder / SUPERVISOR_LOG, _RECORDED_LOG_LINES)
    return ServerFailed(
        server_id=record.server_id,
        reason=record.reason or "it ended",
        cause=found.cause if known else None,
        evidence=found.evidence if known else None,
        remedies=found.remedies if known else (),
        log_tail=tuple(plain_text(line, 400).rstrip() for line in shown[-_RECORDED_LOG_LINES:]),
        stages=stage_times(record, read_history(folder)),
    )


def watched(record: ServerRecord, phase: str, run: Run, events: Iterator[Event]) -> Iterator[Event]:
    """Pass events on, and record after each check and request what the server holds: while it is idle, so unseen."""
    for event in events:
        if isinstance(event, CheckDone | SampleDone):
            held = resident_bytes(record)
            run.append(ServerMemory(server_id=record.server_id, phase=phase, resident_bytes=held))
        yield event
