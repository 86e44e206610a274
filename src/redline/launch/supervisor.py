"""The supervisor: one small process that starts one engine, writes down what becomes of it, and ends it.

    python -m redline.launch.supervisor SERVER_DIR

It leaves the session of the command that started it and outlives it. The engine runs in a process group of its own,
so that stopping means the whole group, and holds the read end of a pipe that closes when the supervisor dies.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from redline.engine.launch_plan import LaunchPlan, launch_plan_from_dict
from redline.launch.logfile import RotatingLog
from redline.launch.readiness import Readiness, ReadinessWatch
from redline.launch.state import (
    LOG_FILE,
    PLAN_FILE,
    ServerRecord,
    ServerState,
    append_event,
    read_record,
    write_record,
)
from redline.record.files import read_json
from redline.rig.process import identify

_READ_BYTES: Final = 65536
_KILL_WAIT_S: Final = 5.0
_STAGE_ORDER: Final = tuple(ServerState)


class Supervisor:
    """Runs one engine from start to end."""

    def __init__(self, directory: Path, plan: LaunchPlan, record: ServerRecord) -> None:
        self._directory, self._plan, self._record = directory, plan, record
        self._log = RotatingLog(directory / LOG_FILE)
        self._pending = b""
        self._stop_asked = False
        self._readiness: Readiness | None = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)

    def run(self) -> None:
        """Start the engine, watch it, and return when it has ended."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._change(ServerState.STARTING, "starting the engine", supervisor=identify(os.getpid()))
        try:
            process, life_write = self._spawn()
        except OSError as error:
            self._change(ServerState.FAILED, f"the engine could not be started: {error}")
            return
        self._change(ServerState.STARTING, f"engine is process {process.pid}", engine_process=identify(process.pid))
        watch = ReadinessWatch(self._plan, os.environ.get("REDLINE_API_KEY"), self._on_readiness)
        watch.start()
        try:
            self._watch(process)
        finally:
            watch.cancel()
            self._end_group(process)
            os.close(life_write)
            self._log.close()
        self._conclude(process.returncode)

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        life_read, life_write = os.pipe()
        embedded = self._plan.form == "embedded"
        argv = [*self._plan.argv, *(["--life-fd", str(life_read)] if embedded else [])]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._plan.env},
                cwd=self._directory,
                start_new_session=True,
                pass_fds=(life_read,) if embedded else (),
            )
        except OSError:
            os.close(life_write)
            raise
        finally:
            os.close(life_read)
        return process, life_write

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, "log")
            selector.register(self._wake_read, selectors.EVENT_READ, "wake")
            while process.poll() is None and not self._stop_asked:
                for key, _ in selector.select(timeout=5.0):
                    if key.data == "log":
                        data = process.stdout.read(_READ_BYTES)
                        if data == b"":
                            selector.unregister(process.stdout)
                        self._take_log(data or b"")
                    else:
                        with contextlib.suppress(BlockingIOError):
                            os.read(self._wake_read, 512)
                if self._readiness is not None:
                    outcome, self._readiness = self._readiness, None
                    if not outcome.ready:
                        self._change(ServerState.FAILED, outcome.reason)
                        return
                    self._change(ServerState.READY, "ready", ready_at=time.time())
        with contextlib.suppress(OSError, ValueError):
            self._take_log(process.stdout.read() or b"")

    def _take_log(self, data: bytes) -> None:
        self._log.write(data)
        if self._record.state is ServerState.READY:
            return
        lines = (self._pending + data).split(b"\n")
        self._pending = lines.pop()[-_READ_BYTES:]
        for line in lines:
            text = line.decode("utf-8", errors="replace")
            for pattern in self._plan.stages:
                if pattern.text in text and self._is_later(ServerState(pattern.stage)):
                    self._change(ServerState(pattern.stage), text.strip()[:200])

    def _is_later(self, state: ServerState) -> bool:
        return _STAGE_ORDER.index(state) > _STAGE_ORDER.index(self._record.state)

    def _end_group(self, process: subprocess.Popen[bytes]) -> None:
        """End every process of the engine's group: SIGTERM, the grace period, SIGKILL; return when all are gone."""
        if self._stop_asked and self._record.state is not ServerState.FAILED:
            self._change(ServerState.DRAINING, "stopping")
        for number, wait_s in ((signal.SIGTERM, self._plan.stop.grace_s), (signal.SIGKILL, _KILL_WAIT_S)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            deadline = time.monotonic() + wait_s
            while time.monotonic() < deadline:
                process.poll()
                if not _group_alive(process.pid):
                    break
                time.sleep(0.02)
            else:
                continue
            break
        process.wait()

    def _conclude(self, exit_code: int) -> None:
        if self._record.state is ServerState.FAILED:
            return
        if self._stop_asked:
            self._change(ServerState.STOPPED, "stopped on request", exit_code=exit_code)
            return
        how = f"signal {-exit_code}" if exit_code < 0 else f"exit status {exit_code}"
        self._change(ServerState.FAILED, f"the engine ended with {how}", exit_code=exit_code)

    def _change(self, state: ServerState, text: str, **fields: object) -> None:
        reason = text if state in (ServerState.FAILED, ServerState.STOPPED) else None
        self._record = replace(self._record, state=state, changed_at=time.time(), reason=reason, **fields)  # type: ignore[arg-type]
        # The event first: whoever reads a state finds the line that explains it.
        append_event(self._directory, state, text)
        write_record(self._directory, self._record)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop_asked = True

    def _on_readiness(self, outcome: Readiness) -> None:
        self._readiness = outcome
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"r")


def _group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    """Detach from the caller and supervise the server of the given folder."""
    directory = Path(sys.argv[1])
    plan_data, record = read_json(directory / PLAN_FILE), read_record(directory)
    if plan_data is None or record is None:
        sys.exit(f"{directory} holds no plan that this version can read")
    plan = launch_plan_from_dict(plan_data)
    # The parent waits for this fork to return, so the caller knows that plan and package are sound.
    if os.fork():
        os._exit(0)
    os.setsid()
    Supervisor(directory, plan, record).run()


def command_for(directory: Path) -> list[str]:
    """Return the command that supervises a folder, run with this interpreter."""
    return [sys.executable, "-P", "-m", "redline.launch.supervisor", str(directory)]


def describe_plan(plan: LaunchPlan) -> str:
    """Return the plan as JSON text, as `main` reads it."""
    from redline.record.codec import jsonable

    return json.dumps(jsonable(plan), indent=1) + "\n"


if __name__ == "__main__":
    main()
