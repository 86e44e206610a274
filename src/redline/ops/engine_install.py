"""Installing an engine into an environment of its own, one a pinned version, never redline's own."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redline.engine.home import EngineHome, save_home
from redline.errors import MissingError, NetworkError, UsageError
from redline.record.files import hold_lock, make_dir
from redline.settings import Settings

_PIN: Final = re.compile(r"vllm==(\d+(?:\.\d+)*[A-Za-z0-9.+-]*)")
_BUSY: Final = "Another redline command is installing an engine"


@dataclass(frozen=True, slots=True)
class InstallStep:
    """What the installation is doing: the installer's own line, and the seconds since it began."""

    text: str
    seconds: float


def install(settings: Settings, pin: str, python: str | None = None) -> Iterator[InstallStep | EngineHome]:
    """Make the environment of a pinned engine with uv, or with venv and pip, and yield each step; the home comes last.

    What an earlier attempt left is removed first; what this one leaves when it fails or is interrupted, too.

    Raises:
        UsageError: not a pin of an engine that is installed so.
        MissingError: the interpreter is not there, or the installer failed.
    """
    found = _PIN.fullmatch(pin)
    if found is None:
        raise UsageError(
            f"{pin} is not a pinned engine.",
            next_step="Give name and version, as in vllm==0.33.0. llama-server is named with `engine add --binary`.",
        )
    name, began = f"vllm-{found[1]}", time.monotonic()
    folder = make_dir(settings.engines_dir) / name
    with hold_lock(settings.engines_dir / ".lock", _BUSY):
        (settings.engines_dir / f"{name}.toml").unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            last = ""
            for argv in _commands(folder, pin, python):
                for line in _lines(argv):
                    last = line or last
                    yield InstallStep(last, time.monotonic() - began)
            home = _finished(folder, name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        save_home(settings.engines_dir, home)
        yield home


def _commands(folder: Path, pin: str, python: str | None) -> list[list[str]]:
    interpreter = str(folder / "bin" / "python")
    uv = shutil.which("uv")
    if uv is not None:
        chosen = ["--python", python] if python else ["--python", sys.executable]
        return [
            [uv, "venv", *chosen, str(folder)],
            [uv, "pip", "install", "--python", interpreter, pin],
        ]
    base = python or sys.executable
    if shutil.which(base) is None:
        raise MissingError(f"{base} is not there.", next_step="Give --python a CPython that vLLM supports.")
    return [
        [base, "-m", "venv", str(folder)],
        [interpreter, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off", pin],
    ]


def _lines(argv: list[str]) -> Iterator[str]:
    """Yield what a command writes; it ends with this process, also when that is interrupted.

    Raises:
        MissingError: it failed; its last line says why.
    """
    environ = {
        name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    }
    last = ""
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environ,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                last = line.strip() or last
                yield line.strip()
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        offline = re.search(r"connection|network|resolve|timed out|temporary failure", last, re.IGNORECASE)
        kind = NetworkError if offline else MissingError
        raise kind(f"The installation failed: {last}", next_step=f"It ran: {' '.join(argv)}")


def _finished(folder: Path, name: str) -> EngineHome:
    interpreter = folder / "bin" / "python"
    done = subprocess.run(
        [str(interpreter), "-c", "import importlib.metadata as m, json; print(json.dumps(m.version('vllm')))"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MissingError("vLLM was installed and is not found.", next_step="Install it again; report it if it stays.")
    version = str(json.loads(done.stdout))
    return EngineHome(name=name, kind="vllm", version=version, interpreter=str(interpreter), managed=True)
