"""Engine homes: choosing one for a plan, adopting one that is there. Making one is `redline.ops.engine_install`."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redline.engine.home import EngineHome, load_homes, save_home
from redline.errors import MissingError, UsageError
from redline.settings import Settings

_LOOK_S: Final = 120.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TITLES: Final = {"vllm": "vLLM", "llamacpp": "llama.cpp"}
_LOOK: Final = (
    "import importlib.metadata as m, json, sys; "
    "print(json.dumps([m.version(sys.argv[1]), '.'.join(map(str, sys.version_info[:3]))]))"
)


@dataclass(frozen=True, slots=True)
class HomeRow:
    """A home as `engine list` shows it; `problem` says why it cannot be used."""

    name: str
    kind: str
    version: str
    program: str
    managed: bool
    problem: str | None
    file: str


class NoEngineHomeError(MissingError):
    """No engine of the wanted kind and version is known."""


def list_homes(settings: Settings) -> tuple[HomeRow, ...]:
    """Return all homes, those that cannot be read included."""
    homes, broken = load_homes(settings.engines_dir)
    rows = [
        HomeRow(
            name=home.name,
            kind=home.kind,
            version=home.version,
            program=home.program,
            managed=home.managed,
            problem=home.problem,
            file=str(settings.engines_dir / f"{home.name}.toml"),
        )
        for home in homes
    ]
    rows += [
        HomeRow(name=Path(path).stem, kind="", version="", program="", managed=False, problem=why, file=path)
        for path, why in broken.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.name))


def choose_home(settings: Settings, kind: str, version: str, name: str | None = None) -> EngineHome:
    """Return the home to start an engine from: the one named, else one of the very version.

    Raises:
        NoEngineHomeError: there is none, or the one meant is broken; the next step says what to type.
    """
    homes, broken = load_homes(settings.engines_dir)
    title = _TITLES.get(kind, kind)
    if name is not None:
        found = next((home for home in homes if home.name == name), None)
        if found is None:
            known = ", ".join(home.name for home in homes) or "none"
            why = next((text for path, text in broken.items() if Path(path).stem == name), None)
            raise NoEngineHomeError(
                f"The engine home {name} cannot be read: {why}." if why else f"There is no engine home {name}.",
                next_step=f"Homes: {known}. `redline engine add` adopts one.",
            )
        return _usable(found)
    fitting = [home for home in homes if home.kind == kind and home.version == version]
    if fitting:
        return _usable(next((home for home in fitting if home.problem is None), fitting[0]))
    others = [f"{home.name} ({home.version})" for home in homes if home.kind == kind]
    there = f" Homes of other versions: {', '.join(others)}; --engine-home NAME takes one of them." if others else ""
    raise NoEngineHomeError(f"No {title} {version} is set up for redline.", next_step=_how_to(kind, version) + there)


def _how_to(kind: str, version: str) -> str:
    if kind == "vllm":
        return (
            f"Install it with `redline engine install vllm=={version}`, adopt yours with `redline engine add --python "
            "PYTHON`, or use a container: --via docker."
        )
    return (
        "Name your llama-server with `redline engine add --binary llama-server`, or use a container: --via docker. "
        f"The tier was written for {version}."
    )


def _usable(home: EngineHome) -> EngineHome:
    if home.problem is not None:
        raise NoEngineHomeError(
            f"The engine home {home.name} cannot be used: {home.problem}.",
            next_step=f"Repair it, or remove it with `redline engine remove {home.name}`.",
        )
    return home


def add_python(
    settings: Settings, python: str, path: tuple[str, ...], name: str | None, environment: Mapping[str, str]
) -> EngineHome:
    """Adopt vLLM of an interpreter, with folders it is to find besides; its version is asked of it.

    Raises:
        MissingError: the interpreter or a folder is not there, or has no vLLM.
        UsageError: the name cannot be one.
    """
    # Not resolved: the interpreter of a virtual environment is a link, and what it links to does not know it.
    interpreter = _program(python)
    folders = tuple(str(Path(item).expanduser().absolute()) for item in path)
    for folder in folders:
        if not Path(folder).is_dir():
            raise MissingError(f"{folder} is no folder.", next_step="Give --path the folder that holds the package.")
    version, python_version = _ask_python(interpreter, folders, environment)
    home = EngineHome(
        name=_checked_name(name or f"vllm-{version}"),
        kind="vllm",
        version=version,
        interpreter=interpreter,
        path=folders,
        environment=dict(environment),
    )
    assert python_version
    return _kept(settings, home)


def _ask_python(interpreter: str, folders: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, str]:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    environ |= {"PYTHONPATH": os.pathsep.join(folders), **environment}
    done = _ask([interpreter, "-c", _LOOK, "vllm"], environ)
    try:
        version, python_version = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it wrote nothing"])[-1]
        raise MissingError(
            f"{interpreter} has no vLLM: {last}",
            next_step="Give the interpreter that vLLM was installed with, and --path for a folder it lies in.",
        ) from None
    return str(version), str(python_version)


def add_binary(settings: Settings, binary: str, name: str | None, environment: Mapping[str, str]) -> EngineHome:
    """Adopt a llama-server; its version is asked of it.

    Raises:
        MissingError: it is not there or does not say a version.
        UsageError: the name cannot be one.
    """
    program = _program(binary)
    done = _ask([program, "--version"], {**os.environ, **environment})
    # llama.cpp common/arg.cpp: `version: 11434 (abcdef12)` on standard error.
    found = re.search(r"version:\s*b?(\d+)", done.stdout + done.stderr)
    if found is None:
        last = ((done.stderr + done.stdout).strip().splitlines() or ["it wrote nothing"])[-1]
        raise MissingError(f"{program} says no version: {last[:200]}", next_step="Give the path of llama-server.")
    home = EngineHome(
        name=_checked_name(name or f"llama-server-b{found[1]}"),
        kind="llamacpp",
        version=f"b{found[1]}",
        binary=program,
        environment=dict(environment),
    )
    return _kept(settings, home)


def remove_home(settings: Settings, name: str) -> bool:
    """Forget a home, and delete its environment where redline made it; say whether that was so.

    Raises:
        MissingError: there is none of that name.
    """
    path = settings.engines_dir / f"{_checked_name(name)}.toml"
    homes, _ = load_homes(settings.engines_dir)
    managed = any(home.managed for home in homes if home.name == name)
    try:
        path.unlink()
    except FileNotFoundError:
        raise MissingError(f"There is no engine home {name}.", next_step="`redline engine list` shows them.") from None
    if managed:
        shutil.rmtree(settings.engines_dir / name, ignore_errors=True)
    return managed


def _kept(settings: Settings, home: EngineHome) -> EngineHome:
    save_home(settings.engines_dir, home)
    return home


def _program(words: str) -> str:
    found = shutil.which(Path(words).expanduser())
    if found is None:
        raise MissingError(f"{words} is not there, or may not be run.", next_step="Give the path of the program.")
    return str(Path(found).absolute())


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name an engine home.", next_step="Use letters, digits, dots and dashes.")
    return name


def _ask(argv: list[str], environ: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LOOK_S,
            check=False,
            env={**environ},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingError(f"{argv[0]} could not be asked: {error}.", next_step="Give a program that runs.") from None
