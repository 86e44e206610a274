"""A launch plan: everything a supervisor needs to start, watch and stop one engine process. Pure data.

Commands are tuples of arguments from beginning to end. Secrets are named, never held: `secret_env` lists the
environment variables that the engine takes from its parent.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder of this machine shown to a container."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """When a server counts as ready: its health path answers, its model is listed, and it makes one token.

    `silence_s` is how long it may neither say nor do anything on the way there before it counts as hung.
    """

    health_path: str = "/health"
    model: str = ""
    timeout_s: float = 600.0
    silence_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPolicy:
    """How an engine is ended: wait for requests in flight, SIGTERM to its first process, SIGKILL to what is left.

    `drain_s` bounds the wait for requests, `grace_s` the one for the processes.
    """

    grace_s: float = 10.0
    drain_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePattern:
    """A stage of loading and the text in a log line that says it has begun.

    `progress` is a pattern with the groups `percent`, or `done` and `total`, for lines that say how far it is.
    """

    stage: str
    text: str
    progress: str = ""

    def fraction(self, line: str) -> float | None:
        """Return how far the stage is, from 0 to 1, or None when the line does not say."""
        if not self.progress or self.text not in line:
            return None
        matches = list(re.finditer(self.progress, line))  # a progress bar may have written over itself: the last counts
        if not matches:
            return None
        groups = matches[-1].groupdict()
        if groups.get("percent") is not None:
            return min(float(groups["percent"]) / 100, 1.0)
        total = float(groups["total"])
        return min(float(groups["done"]) / total, 1.0) if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What a container adds to a plan. `port` is the one inside; `gpus` are ids, or None for the first `gpu_count`.

    `volumes` are named caches that outlive it: name to path inside.
    """

    image: str
    port: int
    gpu_count: int
    gpus: tuple[str, ...] | None = None
    shm_gib: int | None = None
    ipc_host: bool = False
    entrypoint: tuple[str, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """One engine process to be. In a container, `argv` is what runs inside; `host` and `port` are this machine's.

    `secret_aliases` maps the engine's own name of a secret to redline's, where they differ. `gpus` are the indices it
    takes, None where nobody said. `boot_markers` are what an engine prints once in each life: seen again, it was
    started again.
    """

    slug: str
    engine: str
    engine_version: str
    form: Literal["embedded", "native", "docker"]
    argv: tuple[str, ...]
    host: str
    port: int
    served_model: str
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: tuple[str, ...] = ()
    secret_aliases: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    mounts: tuple[Mount, ...] = ()
    gpus: tuple[int, ...] | None = None
    boot_markers: tuple[str, ...] = ()
    readiness: Readiness = field(default_factory=Readiness)
    stop: StopPolicy = field(default_factory=StopPolicy)
    stages: tuple[StagePattern, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where clients of this machine reach the server; a server on all addresses is reached on loopback."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 -- compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def launch_plan_from_dict(data: Mapping[str, Any]) -> LaunchPlan:
    """Return the plan that `jsonable` wrote; the supervisor reads it so, without a validation library in memory.

    Raises:
        KeyError, TypeError: the data is not of this version's shape.
    """
    nested: dict[str, Any] = {
        "argv": tuple(data["argv"]),
        "secret_env": tuple(data["secret_env"]),
        "mounts": tuple(Mount(**mount) for mount in data["mounts"]),
        "gpus": None if data.get("gpus") is None else tuple(data["gpus"]),
        "boot_markers": tuple(data.get("boot_markers", ())),
        "container": _container(data.get("container")),
        "readiness": Readiness(**data["readiness"]),
        "stop": StopPolicy(**data["stop"]),
        "stages": tuple(StagePattern(**stage) for stage in data["stages"]),
    }
    return LaunchPlan(**{**data, **nested})


def _container(data: Mapping[str, Any] | None) -> Container | None:
    if data is None:
        return None
    gpus = data["gpus"]
    return Container(**{**data, "gpus": None if gpus is None else tuple(gpus), "entrypoint": tuple(data["entrypoint"])})
