"""Looks at this machine for what would get in the way, and names one fix for each thing found."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from redline.catalog.load import load_catalog
from redline.errors import RedlineError
from redline.launch.server import running_servers
from redline.launch.state import list_servers
from redline.rig.detect import detect_rig
from redline.settings import Settings
from redline.units import GIB, format_bytes, format_gib


class Health(StrEnum):
    """How one thing stands."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing looked at; `fix` is empty when nothing needs fixing."""

    topic: str
    health: Health
    message: str
    fix: str = ""


def diagnose_host(settings: Settings) -> Iterator[Diagnosis]:
    """Yield what was found, one line a topic."""
    yield _python()
    yield from _hardware()
    yield _embedded()
    yield _models_dir(settings.models_dir)
    yield _state_dir(settings.state_dir)
    yield _secrets(settings)
    yield _catalog(settings)
    yield from _servers(settings)


def _python() -> Diagnosis:
    version = ".".join(map(str, sys.version_info[:3]))
    return Diagnosis("python", Health.OK, f"CPython {version}")


def _hardware() -> Iterator[Diagnosis]:
    rig = detect_rig()
    yield Diagnosis("cpu", Health.OK, f"{rig.cpus} usable, {rig.cpu_model}")
    free, total = format_gib(rig.memory_available_bytes), format_gib(rig.memory_total_bytes)
    if rig.memory_available_bytes < GIB:
        yield Diagnosis("memory", Health.WARN, f"{free} of {total} available", "Close programs that hold memory.")
    else:
        yield Diagnosis("memory", Health.OK, f"{free} of {total} available")
    if rig.gpus:
        yield Diagnosis("gpu", Health.OK, f"{rig.describe()}, driver {rig.driver_version}")
    elif shutil.which("nvidia-smi"):
        yield Diagnosis(
            "gpu",
            Health.WARN,
            "nvidia-smi is there and lists no GPU",
            "Run nvidia-smi to see what the driver says.",
        )
    else:
        yield Diagnosis("gpu", Health.OK, "none: the embedded tiers run on the processor")


def _embedded() -> Diagnosis:
    missing = [name for name in ("xllamacpp", "gguf", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        return Diagnosis(
            "embedded engine",
            Health.BAD,
            f"{', '.join(missing)} not installed",
            "pip install 'redline-llm[embedded]'",
        )
    return Diagnosis("embedded engine", Health.OK, "xllamacpp, gguf and numpy are installed")


def _models_dir(path: Path) -> Diagnosis:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        return Diagnosis("models", Health.BAD, f"{path} cannot be written", "Set MODEL_DIR to a folder you can write.")
    free = shutil.disk_usage(existing).free
    words = f"{path}, {format_bytes(free)} free"
    if free < 500_000_000:
        return Diagnosis("models", Health.WARN, words, "Free some space, or set MODEL_DIR to another disk.")
    return Diagnosis("models", Health.OK, words)


def _state_dir(path: Path) -> Diagnosis:
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        return Diagnosis(
            "state", Health.BAD, f"{path} cannot be written", "Set XDG_STATE_HOME to a folder you can write."
        )
    return Diagnosis("state", Health.OK, str(path))


def _secrets(settings: Settings) -> Diagnosis:
    path = settings.config_file
    if not path.exists():
        return Diagnosis("config", Health.OK, f"no {path}; defaults are used")
    secret = any(name in settings.layers.config for name in ("hf_token", "redline_api_key"))
    if secret and path.stat().st_mode & 0o077:
        return Diagnosis("config", Health.BAD, f"{path} holds a secret and others may read it", f"chmod 600 {path}")
    return Diagnosis("config", Health.OK, str(path))


def _catalog(settings: Settings) -> Diagnosis:
    try:
        catalog = load_catalog(settings.user_catalog_dir)
    except RedlineError as error:
        return Diagnosis("catalogue", Health.BAD, "; ".join(error.details), error.next_step or "")
    return Diagnosis("catalogue", Health.OK, f"{len(catalog.tiers)} tiers of {len(catalog.models)} model(s)")


def _servers(settings: Settings) -> Iterator[Diagnosis]:
    for _, record in running_servers(settings.servers_dir):
        yield Diagnosis("server", Health.OK, f"{record.slug} {record.state.value} at {record.url}")
    for folder, record in list_servers(settings.servers_dir):
        engine, supervisor = record.engine_process, record.supervisor
        if engine and engine.alive() and not (supervisor and supervisor.alive()):
            yield Diagnosis(
                "server",
                Health.BAD,
                f"process {engine.pid} of {record.slug} outlived its supervisor ({folder})",
                "redline down --all",
            )
