"""What tests share: a home of their own, free ports, the real command as a process, the real model fetched once."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as property_settings

from redline.artifacts.store import ensure
from redline.catalog.load import load_catalog
from redline.catalog.types import Catalog
from redline.launch.server import running_servers
from redline.launch.stop import end_orphan, find_orphans, stop
from redline.settings import Settings, load_settings

COMMAND_TIMEOUT_S = 110
# A suite started in the background of a shell inherits "ignore", and would hand it on to the commands it interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# An example takes the longer the busier the machine is; hypothesis has a profile of its own for CI, without a deadline.
if "CI" not in os.environ:
    property_settings.register_profile("redline", deadline=None)
    property_settings.load_profile("redline")


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The packaged catalogue."""
    return load_catalog()


@pytest.fixture(scope="session")
def models_dir(catalog: Catalog) -> Path:
    """The user's own models folder, with the real model in it; fetched when it is not there yet."""
    folder = load_settings(environ=dict(os.environ)).models_dir
    for artifact in ("smollm2-135m-instruct-q4_0", "smollm2-135m-instruct-q4_1"):
        ensure(catalog, artifact, folder)
    return folder


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Return ports that nothing listens on, each once."""
    given: set[int] = set()

    def pick() -> int:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = int(probe.getsockname()[1])
            if port not in given:
                given.add(port)
                return port

    return pick


@dataclass(frozen=True)
class Home:
    """An isolated home: nothing of the developer's own state is read or written, except models when asked for."""

    path: Path
    environ: dict[str, str]

    @property
    def settings(self) -> Settings:
        """The settings a command started here would have."""
        return load_settings(environ=self.environ, working_dir=self.path)

    def start(self, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
        """Start the real command and return its process."""
        return subprocess.Popen(
            [sys.executable, "-m", "redline", *arguments],
            env={**self.environ, **environ},
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run the real command to its end."""
        with self.start(*arguments, **environ) as process:
            out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def json(self, *arguments: str, **environ: str) -> Any:
        """Run the real command with `--json` and return what it wrote; it must have ended with 0."""
        done = self.run(*arguments, "--json", **environ)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home of its own; servers left running in it are stopped at the end."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "REDLINE_"))}
    for name in ("MODEL_DIR", "PORT", "BIND_HOST", "SPEC_N", "HF_TOKEN"):
        environ.pop(name, None)
    environ |= {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    made = Home(tmp_path, environ)
    yield made
    for folder, record in running_servers(made.settings.servers_dir):
        stop(folder, record, now=True)
    for orphan in find_orphans(made.settings.servers_dir):
        end_orphan(orphan)


@pytest.fixture
def real_home(home: Home, models_dir: Path) -> Home:
    """A home that sees the real model."""
    return Home(home.path, {**home.environ, "MODEL_DIR": str(models_dir)})
