"""What a supervisor writes down: the state and the history of its server, whatever the disk does.

A full disk must not end a server that works. What could not be written waits in memory and is tried again.
"""

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from redline.errors import RedlineError
from redline.launch.state import ServerRecord, ServerState, append_line, event_line, write_record

_KEPT_LINES: Final = 1000


class Journal:
    """Keeps the record of one server and brings it to disk. `owed` says that something is still to be written."""

    def __init__(self, directory: Path, record: ServerRecord) -> None:
        self._directory = directory
        self.record = record
        self._lines: list[str] = []
        self._written = record

    @property
    def owed(self) -> bool:
        """Whether the disk does not hold everything yet."""
        return bool(self._lines) or self._written is not self.record

    def change(self, state: ServerState, text: str, **fields: Any) -> None:
        """Bring the server into a state, with the words that explain it."""
        reason = text if state in (ServerState.FAILED, ServerState.STOPPED) else None
        progress = None if state is not self.record.state else self.record.progress
        fields = {"progress": progress, "reason": reason, **fields}
        self.record = replace(
            self.record, state=state, changed_at=time.time(), changed_mono_ns=time.monotonic_ns(), **fields
        )
        self._lines = [*self._lines, event_line(state, text)][-_KEPT_LINES:]
        self.flush()

    def note(self, **fields: Any) -> None:
        """Change fields of the record without a line in the history; written at the next `flush`."""
        self.record = replace(self.record, **fields)

    def flush(self) -> bool:
        """Write what is owed, and say whether all of it is on disk."""
        with contextlib.suppress(OSError, RedlineError):
            # The event first: whoever reads a state finds the line that explains it.
            while self._lines:
                append_line(self._directory, self._lines[0])
                self._lines.pop(0)
            if self._written is not self.record:
                write_record(self._directory, self.record)
                self._written = self.record
        return not self.owed
