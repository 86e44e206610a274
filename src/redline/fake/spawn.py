"""Starts the fake engine as a process and stops it again: for tests and for a demonstration without an engine."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_READY_S = 15.0


@dataclass(frozen=True, slots=True)
class FakeProcess:
    """A fake engine that runs. `log` holds what it printed."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def log_lines(self) -> list[str]:
        """Return what it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


def command(scenario: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the command that plays a scenario with this interpreter."""
    return [sys.executable, "-P", "-m", "redline.fake", scenario, *arguments]


@contextlib.contextmanager
def fake_engine(scenario: str, log: Path, arguments: Sequence[str] = ()) -> Iterator[FakeProcess]:
    """Start a scenario on a free port, yield when it serves, and end its whole group afterwards.

    Raises:
        RuntimeError: it ended, or did not serve within 15 s; the text holds its last lines.
    """
    read_end, write_end = os.pipe()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command(scenario, arguments), "--ready-fd", str(write_end)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(write_end,),
            start_new_session=True,
        )
    os.close(write_end)
    try:
        yield FakeProcess(process, _wait_for_port(read_end, log), log)
    finally:
        os.close(read_end)
        stop(process)


def stop(process: subprocess.Popen[bytes], grace_s: float = 0.5) -> None:
    """End a process and its group: SIGTERM, a moment, SIGKILL."""
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
            return


def _wait_for_port(read_end: int, log: Path) -> int:
    deadline, text = time.monotonic() + _READY_S, b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([read_end], [], [], max(0.0, deadline - time.monotonic()))
        data = os.read(read_end, 64) if ready else b""
        if not data:
            last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
            raise RuntimeError(f"the fake engine does not serve; its last lines:\n{last}")
        text += data
    return int(text)
