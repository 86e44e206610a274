"""Containers through the `docker` command, by argument lists. Knows docker's words, not redline's plans.

Spellings are of Docker 28: docker run, container inspect, wait, logs, stop, rm, update, ps, image inspect, pull, info.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redline.errors import FaultError, MissingError

SERVER_LABEL: Final = "redline.server"
_CALL_S: Final = 60.0
_RUN_S: Final = 300.0


class DockerMissingError(MissingError):
    """There is no docker here, or its daemon does not answer."""


class DockerRefusedError(MissingError):
    """Docker answered, and would not do it; the message is docker's own."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container as docker sees it. `running` is also true between a crash and its restart: ask `restarts`."""

    container_id: str
    name: str
    status: str
    restarts: int
    exit_code: int
    oom_killed: bool
    started_at: str
    error: str
    pid: int

    @property
    def over(self) -> bool:
        """Whether nothing of it runs, or will by itself."""
        return self.status in ("exited", "dead", "created", "removing")

    def describe_end(self) -> str:
        """Return how it ended, in words."""
        if self.oom_killed:
            return "the kernel's memory limit (OOM killed)"
        if self.error:
            return f"docker's error: {self.error}"
        return f"signal {self.exit_code - 128}" if self.exit_code > 128 else f"exit status {self.exit_code}"


def docker(arguments: Sequence[str], *, timeout_s: float = _CALL_S, environ: Mapping[str, str] | None = None) -> str:
    """Run one docker command and return what it wrote to standard output.

    Raises:
        DockerMissingError: no docker, no permission, no daemon, no answer.
        DockerRefusedError: docker refused.
    """
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            env=None if environ is None else {**environ},
        )
    except FileNotFoundError:
        raise DockerMissingError(
            "Docker is not installed.", next_step="Install it, or serve without it: --via native."
        ) from None
    except subprocess.TimeoutExpired:
        raise DockerMissingError(
            f"Docker gave no answer within {timeout_s:.0f} s.", next_step="Look at its daemon: systemctl status docker."
        ) from None
    except OSError as error:
        raise DockerMissingError(f"Docker could not be run: {error}.", next_step="Repair the installation.") from None
    if done.returncode != 0:
        raise _explain(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def _explain(words: str) -> MissingError:
    lower = words.lower()
    if "cannot connect to the docker daemon" in lower or "is the docker daemon running" in lower:
        return DockerMissingError("The docker daemon does not run.", next_step="Start it: sudo systemctl start docker.")
    if "permission denied" in lower and "docker" in lower:
        return DockerMissingError(
            "You may not use docker.", next_step="sudo usermod -aG docker $USER, then log in again."
        )
    if "could not select device driver" in lower or "nvidia-container-cli" in lower:
        return DockerRefusedError(
            f"Docker cannot hand GPUs to a container: {words.splitlines()[-1]}",
            next_step="Install the NVIDIA container toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker.",
        )
    last = words.splitlines()[-1] if words else "docker gave no reason"
    return DockerRefusedError(
        f"Docker refused: {last}", next_step="Run the command of `redline render SLUG --as docker`."
    )


def run_container(arguments: Sequence[str], environ: Mapping[str, str]) -> str:
    """Start a container (`docker run --detach ...`) and return its id.

    Raises:
        DockerMissingError, DockerRefusedError: it was not started.
    """
    lines = docker(arguments, timeout_s=_RUN_S, environ=environ).split()
    if not lines:
        raise DockerRefusedError("Docker named no container.", next_step="See `docker ps --all`.")
    return lines[-1]


def inspect_container(reference: str) -> ContainerState | None:
    """Return a container's state, or None when there is no such container.

    Raises:
        DockerMissingError: docker does not answer.
    """
    try:
        text = docker(["container", "inspect", reference])
    except DockerRefusedError as error:
        if "no such container" in error.message.lower():
            return None
        raise
    try:
        return _state(json.loads(text)[0])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise FaultError(f"docker container inspect wrote something unreadable: {error}.") from None


def _state(data: Mapping[str, Any]) -> ContainerState:
    state = data["State"]
    return ContainerState(
        container_id=str(data["Id"]),
        name=str(data.get("Name", "")).lstrip("/"),
        status=str(state["Status"]),
        restarts=int(data.get("RestartCount", 0)),
        exit_code=int(state.get("ExitCode", 0)),
        oom_killed=bool(state.get("OOMKilled", False)),
        started_at=str(state.get("StartedAt", "")),
        error=str(state.get("Error", "")),
        pid=int(state.get("Pid", 0)),
    )


def find_containers(label: str = SERVER_LABEL) -> dict[str, str]:
    """Return the containers that carry a label, ended ones included: value of the label -> container id.

    Raises:
        DockerMissingError: docker does not answer.
    """
    layout = '{{.ID}}\t{{.Label "' + label + '"}}'
    lines = docker(["ps", "--all", "--no-trunc", "--filter", f"label={label}", "--format", layout]).splitlines()
    pairs = (line.partition("\t") for line in lines if "\t" in line)
    return {value: container_id for container_id, _, value in pairs if value}


def set_restart(reference: str, policy: str) -> None:
    """Change a container's restart policy.

    Raises:
        DockerMissingError, DockerRefusedError: it was not changed.
    """
    docker(["update", f"--restart={policy}", reference])


def end_container(reference: str, grace_s: float) -> bool:
    """Stop and remove a container; say whether it is gone. The restart policy goes first, so that it stays down.

    Raises:
        DockerMissingError: docker does not answer.
    """
    for words in (
        ["update", "--restart=no", reference],
        ["stop", f"--time={max(1, round(grace_s))}", reference],
        ["rm", "--force", reference],
    ):
        try:
            docker(words, timeout_s=_CALL_S + grace_s)
        except DockerRefusedError:
            continue  # gone already, or in the way of nothing: the look below decides
    return inspect_container(reference) is None


def has_image(image: str) -> bool:
    """Whether an image is here.

    Raises:
        DockerMissingError: docker does not answer.
    """
    try:
        docker(["image", "inspect", "--format", "{{.Id}}", image])
    except DockerRefusedError:
        return False
    return True


def pull_image(image: str) -> Iterator[str]:
    """Fetch an image and yield docker's lines as they come.

    Raises:
        DockerMissingError, DockerRefusedError: it was not fetched.
    """
    try:
        process = subprocess.Popen(
            ["docker", "pull", image],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        raise DockerMissingError(
            "Docker is not installed.", next_step="Install it, or serve without it: --via native."
        ) from None
    last = ""
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last = line.strip() or last
                yield last
        finally:
            if process.poll() is None and last and process.stdout is not None:
                process.terminate()
    if process.returncode != 0:
        raise _explain(last)


@dataclass(frozen=True, slots=True)
class DockerInfo:
    """The daemon: its version, and whether it can hand out NVIDIA GPUs (a runtime, or devices of CDI)."""

    version: str
    gpus: bool


def docker_info() -> DockerInfo:
    """Return what the daemon says of itself.

    Raises:
        DockerMissingError: docker does not answer.
    """
    data = json.loads(docker(["info", "--format", "{{json .}}"]))
    if data.get("ServerErrors"):
        raise _explain(str(data["ServerErrors"][0]))
    devices = " ".join(str(item) for item in data.get("DiscoveredDevices") or ())
    return DockerInfo(
        version=str(data.get("ServerVersion", "")),
        gpus="nvidia" in (data.get("Runtimes") or {}) or "nvidia.com/gpu" in devices,
    )
