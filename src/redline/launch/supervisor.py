"""The supervisor: one small process that starts one engine, writes down what becomes of it, and ends it.

    python -m redline.launch.supervisor SERVER_DIR

It leaves the session of the command that started it and outlives it. The engine is tied to it and dies with it as far
as the kernel can see to that; what is left then is found by later commands. SIGTERM: finish the requests, then stop.
SIGINT, or a second SIGTERM: stop at once.
"""

import contextlib
import json
import os
import select
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redline.engine.launch_plan import LaunchPlan
from redline.launch.boot_times import remember_boot, stage_seconds
from redline.launch.boot_watch import BootWatch, LifeBegan, Progress
from redline.launch.container import ContainerEngine
from redline.launch.drain import requests_in_flight
from redline.launch.engine_process import EngineProcess, EngineStartRefused, NativeEngine, last_words
from redline.launch.journal import Journal
from redline.launch.logfile import RotatingLog
from redline.launch.plan_file import read_plan
from redline.launch.quiet import QuietWatch
from redline.launch.readiness import Readiness, ReadinessWatch
from redline.launch.state import (
    LOG_FILE,
    ServerRecord,
    ServerState,
    event_line,
    read_history,
    read_record,
)
from redline.rig.process import identify

LIVES: Final = 3
_BOOT_TICK_S: Final = 1.0
_READY_TICK_S: Final = 5.0
_DRAIN_TICK_S: Final = 0.2
_GATHER_S: Final = 0.2
_MUCH_BYTES: Final = 16_384
_MOST_READS: Final = 64
_LOOK_AROUND_S: Final = 30.0
_STOPPED_SETTLE_S: Final = 10.0
_UNTIL_STOPPED = "stopped on request"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a server's life ends, and why; `exit_code` is the engine's."""

    state: ServerState
    reason: str
    exit_code: int | None = None


class Supervisor:
    """Runs one engine from start to end."""

    def __init__(self, directory: Path, plan: LaunchPlan, record: ServerRecord, engine: EngineProcess) -> None:
        self._directory, self._plan, self._engine = directory, plan, engine
        self._journal = Journal(directory, record)
        self._log = RotatingLog(directory / LOG_FILE)
        self._boot = BootWatch(plan)
        self._quiet = QuietWatch(plan.readiness.silence_s, engine.family)
        self._key = os.environ.get("REDLINE_API_KEY")
        self._stop_signals: list[int] = []
        self._readiness: Readiness | None = None
        self._readiness_watch: ReadinessWatch | None = None
        self._restarts_seen = 0
        self._restarts_at_ready = 0
        self._lives = 0
        self._began = self._looked_around = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._log_source: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        for descriptor in (self._wake_read, self._wake_write):
            os.set_blocking(descriptor, False)

    @property
    def _state(self) -> ServerState:
        return self._journal.record.state

    def run(self, announce: Callable[[], None]) -> None:
        """Start the engine, watch it, and return when it has ended. `announce` is called once this is on record."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        own = identify(os.getpid())
        self._journal.change(ServerState.STARTING, "starting the engine", supervisor=own, owner=None)
        announce()
        try:
            fields = self._engine.start()
        except EngineStartRefused as error:
            gone = self._engine.end(0.0, self._take_output)
            self._journal.change(ServerState.FAILED, str(error), ended=gone)
            self._settle()
            return
        self._journal.change(ServerState.STARTING, _started_words(fields), **fields)
        self._engine.family()
        self._wait_until_ready()
        verdict = Verdict(ServerState.FAILED, "its supervisor failed; see supervisor.log")
        try:
            verdict = self._watch()
        finally:
            self._finish(verdict)

    def _watch(self) -> Verdict:
        """Return how it came to an end: the engine's doing, a request to stop, or a boot that leads nowhere."""
        while True:
            self._take_events(_READY_TICK_S if self._state is ServerState.READY else _BOOT_TICK_S)
            if self._stop_signals:
                self._drain()
                return Verdict(ServerState.STOPPED, _UNTIL_STOPPED)
            ended = self._engine.poll()
            if ended is not None:
                return Verdict(ServerState.FAILED, f"the engine ended with {ended.how}", ended.exit_code)
            reason = self._on_readiness() or self._on_restart() or self._on_boot()
            if reason is not None:
                return Verdict(ServerState.FAILED, reason)
            self._look_around()

    def _take_events(self, limit_s: float) -> None:
        """Wait for output, a signal or the limit, and take what came."""
        source = self._engine.log_descriptor()
        if source != self._log_source:
            if self._log_source is not None:
                self._selector.unregister(self._log_source)
            if source is not None:
                self._selector.register(source, selectors.EVENT_READ)
            self._log_source = source
        for key, _ in self._selector.select(_BOOT_TICK_S if self._journal.owed else limit_s):
            if key.fd == self._wake_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 512)
            else:
                self._take_log()

    def _take_output(self) -> None:
        while data := self._engine.read_log():
            self._log.write(data)

    def _take_log(self) -> None:
        data = self._engine.read_log()
        if data is None:
            if self._log_source is not None:
                self._selector.unregister(self._log_source)
                self._log_source = None
        elif data:
            self._keep(data)
            if self._state is ServerState.READY and len(data) < _MUCH_BYTES:
                # A server that logs every request must not wake this up for each; a signal or its end must, at once.
                select.select([self._wake_read], [], [], _GATHER_S)

    def _catch_up(self) -> None:
        """Take what the engine had said before it was seen to be ready; one that talks on is not waited for."""
        for _ in range(_MOST_READS):
            if not (data := self._engine.read_log()):
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        self._log.write(data)
        if self._state is ServerState.READY:
            return
        self._quiet.heard()
        for seen in self._boot.feed(data):
            if isinstance(seen, Progress):
                self._journal.note(progress=seen.share)
            elif isinstance(seen, LifeBegan):
                self._lives = seen.number
                if seen.number > 1:
                    self._journal.change(ServerState.STARTING, f"the engine began its life number {seen.number}")
            elif self._state not in (ServerState.DRAINING, ServerState.READY):
                self._journal.change(seen.state, seen.line)
                self._looked_around = 0.0  # engines start their workers from stage to stage

    def _wait_until_ready(self) -> None:
        if self._readiness_watch is not None:
            self._readiness_watch.cancel()
        self._readiness = None
        self._readiness_watch = ReadinessWatch(self._plan, self._key, self._on_outcome)
        self._readiness_watch.start()

    def _on_readiness(self) -> str | None:
        outcome, self._readiness = self._readiness, None
        if outcome is None:
            return None
        if not outcome.ready:
            return f"{outcome.reason}; it got as far as {self._state.value}"
        self._catch_up()
        if self._restarts_seen == 0:
            record, end = self._journal.record, json.loads(event_line(ServerState.READY, ""))
            stages = stage_seconds(record, [*read_history(self._directory), end])
            remember_boot(self._directory.parent, record, stages)
        ready_s = round(time.monotonic() - self._began, 3)
        self._journal.change(ServerState.READY, "ready", ready_at=time.time(), ready_s=ready_s)
        self._restarts_at_ready, self._looked_around = self._restarts_seen, 0.0
        self._engine.promote()
        return None

    def _on_restart(self) -> str | None:
        restarts = self._engine.restarts()
        if restarts == self._restarts_seen:
            return None
        self._restarts_seen = restarts
        self._journal.note(restarts=restarts)
        since_ready = restarts - self._restarts_at_ready
        if since_ready >= LIVES - 1:
            return f"it was started again {since_ready} times and never stayed up (a crash loop)"
        text = f"docker started it again (restart {restarts})"
        self._journal.change(ServerState.STARTING, text, ready_at=None)
        self._boot = BootWatch(self._plan)
        self._quiet.heard()
        self._wait_until_ready()
        return None

    def _on_boot(self) -> str | None:
        if self._state is ServerState.READY:
            return None
        if self._lives >= LIVES:
            return f"the engine began its life {self._lives} times and was never ready (a crash loop)"
        if self._quiet.hung():
            return f"it has said and done nothing for {self._plan.readiness.silence_s:.0f} s while {self._state.value}"
        return None

    def _look_around(self) -> None:
        """Bring to disk what is owed, and now and then look who belongs to the engine."""
        if self._log.lost_bytes != self._journal.record.lost_log_bytes:
            self._journal.note(lost_log_bytes=self._log.lost_bytes)
        if self._journal.owed:
            self._journal.flush()
        now = time.monotonic()
        if now - self._looked_around > _LOOK_AROUND_S:
            self._looked_around = now
            self._engine.family()

    def _drain(self) -> None:
        """Let requests in flight come to their end, for a bounded time."""
        if self._state is not ServerState.READY or self._now():
            return
        told, deadline = 0, time.monotonic() + self._plan.stop.drain_s
        while time.monotonic() < deadline and not self._now() and self._engine.poll() is None:
            busy = requests_in_flight(self._plan, self._key)
            if not busy:
                return
            if busy != told:
                words = f"waiting for {busy} request{'s' if busy > 1 else ''}, {self._plan.stop.drain_s:.0f} s at most"
                self._journal.change(ServerState.DRAINING, words)
                told = busy
            self._take_events(_DRAIN_TICK_S)

    def _now(self) -> bool:
        return signal.SIGINT in self._stop_signals or len(self._stop_signals) > 1

    def _finish(self, verdict: Verdict) -> None:
        """End the engine and all it started, then write down how it came to its end."""
        if self._readiness_watch is not None:
            self._readiness_watch.cancel()
        if verdict.state is ServerState.STOPPED:
            self._journal.change(ServerState.DRAINING, "stopping")
        gone = self._engine.end(0.0 if self._now() else self._plan.stop.grace_s, self._take_output)
        ended = self._engine.poll()
        self._log.write(last_words(self._engine))
        self._log.close()
        code = verdict.exit_code if verdict.exit_code is not None else (ended.exit_code if ended else None)
        reason = verdict.reason if gone else f"{verdict.reason}; some of its processes could not be ended"
        self._journal.note(lost_log_bytes=self._log.lost_bytes)
        self._journal.change(verdict.state, reason, exit_code=code, ended=gone)
        self._settle()

    def _settle(self) -> None:
        """Write the end, waiting for a full disk: giving up would leave a record that is wrong until it is repaired."""
        delay_s, began = 0.05, time.monotonic()
        while not self._journal.flush():
            waited_s = time.monotonic() - began
            if self._now() or (self._stop_signals and waited_s > _STOPPED_SETTLE_S):
                return
            time.sleep(delay_s)
            delay_s = min(2.0, delay_s * 2)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stop_signals.append(number)

    def _on_outcome(self, outcome: Readiness) -> None:
        self._readiness = outcome
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"r")


def _started_words(fields: dict[str, object]) -> str:
    if container := fields.get("container"):
        return f"engine is container {str(container)[:12]}"
    return f"engine is process {getattr(fields.get('engine_process'), 'pid', 0)}"


def make_engine(directory: Path, plan: LaunchPlan, record: ServerRecord) -> EngineProcess:
    """Return the engine of a plan in its form, not started."""
    kind = ContainerEngine if plan.form == "docker" else NativeEngine
    return kind(directory, plan, record.server_id, dict(os.environ))


def main() -> None:
    """Detach from the caller and supervise the server of the given folder."""
    directory = Path(sys.argv[1])
    plan, record = read_plan(directory), read_record(directory)
    if plan is None or record is None:
        sys.exit(f"{directory} holds no plan that this version can read")
    told_read, told_write = os.pipe()
    if os.fork():
        # The caller goes on only once the supervisor is on record: from then on every command can find it.
        os.close(told_write)
        os._exit(0 if os.read(told_read, 1) else 1)
    os.close(told_read)
    os.setsid()

    def announce() -> None:
        os.write(told_write, b"1")
        os.close(told_write)

    try:
        Supervisor(directory, plan, record, make_engine(directory, plan, record)).run(announce)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    main()
