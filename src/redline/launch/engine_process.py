"""What a supervisor needs of an engine in any form, and the form that is a process of this machine."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from redline.engine.launch_plan import LaunchPlan
from redline.launch.family import SERVER_VARIABLE, Family, end_family, find_family, remember_processes
from redline.launch.pipe import pipe_descriptor, read_pipe
from redline.rig.process import ProcessId, adopt_orphans, identify, tied
from redline.rig.processes import read_processes

_PIPE_BYTES: Final = 2**20
_LAST_WORDS_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Ended:
    """An engine's end, in words; the exit code is negative for a signal, None where it is not known."""

    how: str
    exit_code: int | None = None


class EngineStartRefused(Exception):  # noqa: N818 -- becomes the reason of a failed server
    """The engine could not be started at all; the message says why."""


class EngineProcess(Protocol):
    """An engine under a supervisor. Every call returns soon, `start` and `end` excepted."""

    def start(self) -> dict[str, Any]:
        """Start it, and return the fields of the server's record that say what was started.

        Raises:
            EngineStartRefused: it could not be.
        """

    def log_descriptor(self) -> int | None:
        """Return where its output can be read, or None when that has ended."""

    def read_log(self) -> bytes | None:
        """Return output that is there, or None at its end."""

    def poll(self) -> Ended | None:
        """Return how it ended, or None while it runs. Also reaps what it left."""

    def restarts(self) -> int:
        """Return how often something else (a container's policy) has started it again."""

    def promote(self) -> None:
        """Have it survive what it should survive from now on: it is ready."""

    def family(self) -> Family:
        """Return its processes; none where they are not this machine's to list."""

    def end(self, grace_s: float, pump: Callable[[], None]) -> bool:
        """End it and everything it started, and say whether nothing is left; `pump` takes its output meanwhile."""


class NativeEngine:
    """An engine that is a process of this machine, in a session of its own and tied to the supervisor."""

    def __init__(self, directory: Path, plan: LaunchPlan, server_id: str, environ: Mapping[str, str]) -> None:
        self._directory, self._plan, self._server_id = directory, plan, server_id
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: ProcessId | None = None
        self._life_write: int | None = None
        self._remembered: tuple[int, ...] = ()

    def start(self) -> dict[str, Any]:
        """Start the process; see `EngineProcess.start`."""
        plan, environment = self._plan, engine_environment(self._plan, self._environ, self._server_id)
        if shutil.which(plan.argv[0], path=environment.get("PATH")) is None:
            raise EngineStartRefused(f"the engine could not be started: {plan.argv[0]} is no program here")
        adopt_orphans()
        life_read, self._life_write = os.pipe()
        embedded = plan.form == "embedded"
        # The worker of the embedded engine ties itself; a foreign program is tied from outside.
        argv = [*plan.argv, "--life-fd", str(life_read)] if embedded else tied(list(plan.argv))
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._directory,
                start_new_session=True,
                pass_fds=(life_read,) if embedded else (),
            )
        except OSError as error:
            raise EngineStartRefused(f"the engine could not be started: {error}") from None
        finally:
            os.close(life_read)
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        with contextlib.suppress(OSError):  # room for what is written while output is gathered
            fcntl.fcntl(self._process.stdout.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._identity = identify(self._process.pid)
        return {"engine_process": self._identity}

    def log_descriptor(self) -> int | None:
        """Return the pipe of its output."""
        return pipe_descriptor(self._process.stdout if self._process else None)

    def read_log(self) -> bytes | None:
        """Return output that is there, or None when every process that could write has closed it."""
        return read_pipe(self._process.stdout if self._process else None)

    def poll(self) -> Ended | None:
        """Return how the first process ended; its workers count as gone with it."""
        assert self._process is not None
        code = self._process.poll()
        self._reap_adopted()
        if code is None:
            return None
        return Ended(f"signal {-code}" if code < 0 else f"exit status {code}", code)

    def restarts(self) -> int:
        """Nothing restarts a process of this machine but itself, which its log shows."""
        return 0

    def promote(self) -> None:
        """Nothing to do: a native engine is never restarted behind the supervisor's back."""

    def family(self) -> Family:
        """Return its processes, and write them down when they are others than before."""
        found = find_family(self._server_id, self._identity, (), read_processes(), roots=(os.getpid(),))
        if found.pids != self._remembered:
            with contextlib.suppress(Exception):  # a full disk: the group and the session still tell most of them
                remember_processes(self._directory, found)
                self._remembered = found.pids
        return found

    def end(self, grace_s: float, pump: Callable[[], None]) -> bool:
        """End all its processes."""
        if self._process is None:
            return True
        gone = end_family(self._left, self._identity, grace_s, pump)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        if self._life_write is not None:
            os.close(self._life_write)
            self._life_write = None
        return gone

    def _left(self) -> Family:
        assert self._process is not None
        self._process.poll()
        self._reap_adopted()
        return self.family()

    def _reap_adopted(self) -> None:
        """Let go of zombies of processes whose own parent ended before them."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or (self._process is not None and found.si_pid == self._process.pid):
                return  # its exit status belongs to `Popen`
            with contextlib.suppress(ChildProcessError):
                os.waitpid(found.si_pid, os.WNOHANG)


def last_words(engine: EngineProcess) -> bytes:
    """Return what an engine that has ended still had to say; its orphans may hold the pipe open, so not for long."""
    deadline = time.monotonic() + _LAST_WORDS_S
    pieces = []
    while (data := engine.read_log()) is not None:
        if data:
            pieces.append(data)
        elif time.monotonic() > deadline or engine.poll() is not None:
            break
    return b"".join(pieces)


def engine_environment(plan: LaunchPlan, environ: Mapping[str, str], server_id: str) -> dict[str, str]:
    """Return an engine's environment: this process's, the plan's, the secrets under the engine's own names, a mark.

    A program that is not redline's own gets nothing of redline's virtual environment.
    """
    found = dict(environ)
    if plan.form != "embedded":
        own = str(Path(sys.prefix) / "bin")
        found["PATH"] = os.pathsep.join(part for part in found.get("PATH", "").split(os.pathsep) if part != own)
        for name in ("VIRTUAL_ENV", "PYTHONHOME", "REDLINE_API_KEY", "HF_TOKEN"):
            found.pop(name, None)
    found |= plan.env
    for name in plan.secret_env:
        value = environ.get(plan.secret_aliases.get(name, name))
        if value:
            found[name] = value
    return {**found, SERVER_VARIABLE: server_id}
