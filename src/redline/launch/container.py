"""An engine in a container, under a supervisor: started without a restart policy, promoted once it is ready.

Its log and its end come from two docker commands that wait, so that nothing is polled; both are tied to the supervisor.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import RedlineError
from redline.launch.docker import (
    SERVER_LABEL,
    ContainerState,
    end_container,
    inspect_container,
    run_container,
    set_restart,
)
from redline.launch.engine_process import Ended, EngineStartRefused
from redline.launch.family import Family
from redline.launch.pipe import pipe_descriptor, read_pipe
from redline.rig.process import tied

_DAEMON_AWAY_S: Final = 60.0
_ASK_EVERY_S: Final = 2.0
_LOOK_EVERY_S: Final = 30.0  # a `wait` that began after a crash has missed it; the count of restarts has not
AFTER_READY: Final = "unless-stopped"


class ContainerEngine:
    """An engine that docker runs. `restarts` counts lives that docker's policy began."""

    def __init__(self, directory: Path, plan: LaunchPlan, server_id: str, environ: Mapping[str, str]) -> None:
        self._directory, self._plan, self._server_id, self._environ = directory, plan, server_id, environ
        self._container = ""
        self._started_at = ""
        self._restarts = 0
        self._away_since: float | None = None
        self._asked = 0.0
        self._promoted = False
        self._ended: Ended | None = None
        self._logs: subprocess.Popen[bytes] | None = None
        self._waiter: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        """Run the container; see `EngineProcess.start`."""
        environ = _with_secrets(self._plan, self._environ)
        try:
            self._container = run_container(run_arguments(self._plan, self._server_id, environ), environ)
        except RedlineError as error:
            raise EngineStartRefused(f"the container was not started: {error.message}") from None
        self._waiter = self._child(["docker", "wait", self._container], out=subprocess.DEVNULL)
        self._logs = self._child(["docker", "logs", "--follow", self._container], out=subprocess.PIPE)
        with contextlib.suppress(RedlineError):
            state = inspect_container(self._container)
            self._started_at = state.started_at if state else ""
        return {"container": self._container}

    def _child(self, argv: list[str], *, out: int) -> "subprocess.Popen[bytes]":
        error = subprocess.STDOUT if out == subprocess.PIPE else subprocess.DEVNULL
        child = subprocess.Popen(tied(argv), stdin=subprocess.DEVNULL, stdout=out, stderr=error)
        if child.stdout is not None:
            os.set_blocking(child.stdout.fileno(), False)
        return child

    def log_descriptor(self) -> int | None:
        """Return the pipe of `docker logs`."""
        return pipe_descriptor(self._logs.stdout if self._logs else None)

    def read_log(self) -> bytes | None:
        """Return output that is there, or None when docker has no more."""
        return read_pipe(self._logs.stdout if self._logs else None)

    def poll(self) -> Ended | None:
        """Ask docker once its `wait` has come back: the container ended, or its policy began another life.

        A ready one is asked for now and then as well.
        """
        if self._logs is not None:
            self._logs.poll()
        if self._ended is not None or self._waiter is None:
            return self._ended
        now = time.monotonic()
        if self._waiter.poll() is None and not (self._promoted and now - self._asked > _LOOK_EVERY_S):
            return None
        if self._away_since is not None and now - self._asked < _ASK_EVERY_S:
            return None
        self._asked = now
        try:
            state = inspect_container(self._container)
        except RedlineError as error:
            # A daemon that is being restarted takes its `wait` along and may leave the containers running.
            self._away_since = self._away_since or now
            if now - self._away_since > _DAEMON_AWAY_S:
                self._ended = Ended(f"docker out of reach: {error.message}")
            return self._ended
        if self._away_since is not None and self._promoted:
            self.promote()
        self._away_since = None
        if state is None:
            self._ended = Ended("its removal by somebody else")
        elif state.over:
            self._ended = Ended(state.describe_end(), state.exit_code)
        else:
            self._watch_on(state)
        return self._ended

    def _watch_on(self, state: ContainerState) -> None:
        if state.started_at != self._started_at or state.restarts > self._restarts:
            self._restarts = max(self._restarts + 1, state.restarts)
            self._started_at = state.started_at
        if self._waiter is None or self._waiter.poll() is not None:
            self._waiter = self._child(["docker", "wait", self._container], out=subprocess.DEVNULL)
        if self.log_descriptor() is None:  # some versions end the log with the life, and the next one is to be read
            since = ["--since", state.started_at] if state.started_at else ["--tail", "0"]
            self._logs = self._child(["docker", "logs", "--follow", *since, self._container], out=subprocess.PIPE)

    def restarts(self) -> int:
        """Return how often docker began another life."""
        return self._restarts

    def promote(self) -> None:
        """Have docker start it again after a crash or a restart of the machine, now that it was seen to work."""
        self._promoted = True
        with contextlib.suppress(RedlineError):  # a daemon that is away now is told when it is back
            set_restart(self._container, AFTER_READY)

    def family(self) -> Family:
        """Return nothing: a container's processes are docker's to list and to end."""
        return Family(())

    def end(self, grace_s: float, pump: Callable[[], None]) -> bool:
        """Stop and remove the container."""
        gone = True
        if self._container:
            try:
                gone = end_container(self._container, grace_s)
            except RedlineError:
                gone = False
        for child in (self._logs, self._waiter):
            if child is not None and child.poll() is None:
                child.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=2.0)
        return gone


def _with_secrets(plan: LaunchPlan, environ: Mapping[str, str]) -> dict[str, str]:
    values = {name: environ.get(plan.secret_aliases.get(name, name)) for name in plan.secret_env}
    return {**environ, **{name: value for name, value in values.items() if value}}


def run_arguments(plan: LaunchPlan, server_id: str, environ: Mapping[str, str]) -> list[str]:
    """Return the arguments of docker that run the plan. A secret is named; docker takes its value from `environ`."""
    container = plan.container
    if container is None:
        raise EngineStartRefused(f"{plan.slug} has no container form")
    words = ["run", "--detach", f"--name=redline-{server_id}", "--restart=no", f"--label={SERVER_LABEL}={server_id}"]
    words += [f"--label=redline.slug={plan.slug}"]
    chosen = ",".join(container.gpus) if container.gpus else None
    if chosen:
        words.append(f'--gpus="device={chosen}"')  # the inner marks are docker's own: a comma would end the option
    elif container.gpu_count:
        words.append(f"--gpus={container.gpu_count}")
    if container.ipc_host:
        words.append("--ipc=host")
    if container.shm_gib is not None and not container.ipc_host:
        words.append(f"--shm-size={container.shm_gib}g")
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    words.append(f"--publish={host}:{plan.port}:{container.port}")
    words += [f"--volume={mount.source}:{mount.target}{':ro' if mount.read_only else ''}" for mount in plan.mounts]
    words += [f"--volume={name}:{path}" for name, path in container.volumes.items()]
    words += [f"--env={name}={value}" for name, value in plan.env.items()]
    words += [f"--env={name}" for name in plan.secret_env if environ.get(name)]
    if container.entrypoint:
        words.append(f"--entrypoint={container.entrypoint[0]}")
    return [*words, container.image, *_inside(plan)]


def _inside(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what follows the image: the image's entry point already is the program."""
    return plan.argv[2:] if plan.argv[:2] == ("vllm", "serve") else plan.argv[1:]
