"""Where an engine lives that is not redline's own: an interpreter with an extra path, or a program. Data, as TOML.

One file a home: `$XDG_DATA_HOME/redline/engines/<name>.toml`. Nothing here runs it; a plan takes its command from it.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.record.codec import from_json, jsonable
from redline.record.files import make_dir, write_atomic

KINDS: Final = ("vllm", "llamacpp")
# The program name that opens a native plan's argv, and what it is called with inside an interpreter's environment:
# vllm 0.33.0 vllm/entrypoints/cli/main.py can be run as a module.
_PROGRAMS: Final = {"vllm": "vllm", "llamacpp": "llama-server"}
_MODULES: Final = {"vllm": "vllm.entrypoints.cli.main"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHome:
    """An engine in one version. `managed`: made by `redline engine install`, in the folder named after it.

    `interpreter` starts a Python engine and `path` is what it is to find besides its own packages; `binary` is a
    program that is the engine itself. `environment` is set for it, and outweighs what a plan sets.
    """

    name: str
    kind: str
    version: str
    interpreter: str | None = None
    binary: str | None = None
    path: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    managed: bool = False

    @property
    def program(self) -> str:
        """What must exist for the home to be of use."""
        return self.binary or self.interpreter or ""

    @property
    def command(self) -> tuple[str, ...]:
        """The words that stand for the engine's program name."""
        return (self.binary,) if self.binary else (self.interpreter or "", "-m", _MODULES.get(self.kind, self.kind))

    @property
    def problem(self) -> str | None:
        """Why it cannot be used now, or None."""
        if not os.access(self.program, os.X_OK):
            return f"{self.program} is not there, or may not be run"
        missing = [folder for folder in self.path if not Path(folder).is_dir()]
        return f"{missing[0]} is not there" if missing else None


def at_home(plan: LaunchPlan, home: EngineHome, environ: Mapping[str, str]) -> LaunchPlan:
    """Return a native plan with the command and the environment of a home. `environ` gives the PATH that is added to.

    Raises:
        UsageError: the plan is not for this kind of engine.
    """
    if home.kind != plan.engine or plan.argv[0] != _PROGRAMS.get(home.kind):
        raise UsageError(
            f"{home.name} is a home of {home.kind}; {plan.slug} needs {plan.engine}.",
            next_step="`redline engine list` shows the homes.",
        )
    env = dict(plan.env)
    if home.interpreter:
        env["PATH"] = os.pathsep.join([str(Path(home.interpreter).parent), environ.get("PATH", os.defpath)])
    if home.path:
        env["PYTHONPATH"] = os.pathsep.join(home.path)
    return replace(
        plan,
        argv=(*home.command, *plan.argv[1:]),
        env={**env, **home.environment},
        engine_version=home.version,
    )


def load_homes(folder: Path) -> tuple[tuple[EngineHome, ...], dict[str, str]]:
    """Return the homes, and the files that hold none: path -> what is wrong with it."""
    homes, broken = [], {}
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
        try:
            homes.append(_read_home(path))
        except (OSError, ValueError) as error:
            broken[str(path)] = str(error).splitlines()[0]
    return tuple(homes), broken


def _read_home(path: Path) -> EngineHome:
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    home = from_json(EngineHome, {"name": path.stem, **data})
    if home.kind not in KINDS or not home.program:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, and interpreter or binary must be given")
    return home


def save_home(folder: Path, home: EngineHome) -> Path:
    """Write a home's file and return its path.

    Raises:
        AccessError, DiskSpaceError: it cannot be written.
    """
    import tomli_w

    data = {key: value for key, value in jsonable(home).items() if key != "name" and value not in (None, [], {})}
    make_dir(folder)
    path = folder / f"{home.name}.toml"
    write_atomic(path, tomli_w.dumps(data))
    return path
