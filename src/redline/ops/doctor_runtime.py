"""What engines run in, for `doctor`: the embedded one, engine homes, docker and its way to the GPUs."""

import importlib.util
import shutil
from collections.abc import Iterator

from redline.errors import RedlineError
from redline.launch.docker import docker_info
from redline.ops.engines import list_homes
from redline.ops.health import Diagnosis, Health
from redline.settings import Settings

# Nothing of the docker form was run against a real daemon here: it was driven with a scripted docker only.
UNPROVEN = "the docker form is unproven: it was driven with a scripted docker, not with a daemon"


def look_at_runtime(settings: Settings) -> Iterator[Diagnosis]:
    """Yield what is found of engines."""
    yield _embedded(settings)
    yield from _homes(settings)
    yield _docker()


def _embedded(settings: Settings) -> Diagnosis:
    missing = [name for name in ("xllamacpp", "gguf", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        words = f"{', '.join(missing)} not installed"
        # A GPU host with an engine of its own serves without it.
        another = any(row.problem is None for row in list_homes(settings))
        health = Health.WARN if another else Health.BAD
        return Diagnosis("embedded engine", health, words, "pip install 'redline-llm[embedded]'")
    return Diagnosis("embedded engine", Health.OK, "xllamacpp, gguf and numpy are installed")


def _homes(settings: Settings) -> Iterator[Diagnosis]:
    rows = list_homes(settings)
    if not rows:
        yield Diagnosis("engine homes", Health.OK, "none yet: `redline engine install` or `engine add` for GPU tiers")
    for row in rows:
        words = f"{row.name}: {row.kind} {row.version}, {row.program}"
        if row.problem:
            fix = f"Repair it, or: redline engine remove {row.name}"
            yield Diagnosis("engine homes", Health.BAD, f"{row.name}: {row.problem}", fix)
        else:
            yield Diagnosis("engine homes", Health.OK, words)
    known = {row.name for row in rows}
    if settings.engines_dir.is_dir():
        for folder in sorted(path for path in settings.engines_dir.iterdir() if path.is_dir()):
            if folder.name not in known:
                words = f"{folder} is left of an installation that did not finish"
                yield Diagnosis("engine homes", Health.WARN, words, f"rm -r {folder}, or install it again.")


def _docker() -> Diagnosis:
    if shutil.which("docker") is None:
        return Diagnosis("docker", Health.OK, "not installed; --via docker needs it, nothing else does")
    try:
        info = docker_info()
    except RedlineError as error:
        return Diagnosis("docker", Health.WARN, f"{error.message} ({UNPROVEN})", error.next_step or "")
    if not info.gpus and shutil.which("nvidia-smi"):
        fix = "Install the NVIDIA container toolkit, then: sudo nvidia-ctk runtime configure --runtime=docker."
        return Diagnosis("docker", Health.WARN, f"{info.version}, and it cannot hand out GPUs ({UNPROVEN})", fix)
    return Diagnosis("docker", Health.OK, f"{info.version} ({UNPROVEN})")
