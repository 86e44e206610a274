"""A scripted `docker` on PATH: it records how it was called and runs a real process for each container.

It plays what tests need of Docker 28: run, container inspect, logs, wait, update, stop, rm, ps, image inspect, pull,
info; a daemon that is stopped; a restart policy with its count. Run as a script it is the command itself.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATE = "SCRIPTED_DOCKER"
AWAY = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"  # Docker 28


@dataclass(frozen=True)
class DockerDouble:
    """A scripted docker in a folder. `environ` puts it on PATH; `engine` is the code that its containers run."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs to find it."""
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", STATE: str(self.folder)}

    def calls(self, word: str) -> list[list[str]]:
        """Return the calls of one command, as argument lists."""
        lines = (self.folder / "calls.jsonl").read_text().splitlines()
        return [call for call in map(json.loads, lines) if call[:1] == [word]]

    def containers(self) -> list[dict[str, Any]]:
        """Return what is known of the containers that were not removed."""
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.container"))]

    def waits(self) -> int:
        """Return how many `docker wait` have begun to wait."""
        return sum(len(path.read_text().split()) for path in self.folder.glob("*.waits"))

    def set_daemon(self, *, runs: bool) -> None:
        """Start or stop the daemon; containers go on."""
        (self.folder / "stopped").unlink(missing_ok=True) if runs else (self.folder / "stopped").touch()


def make_docker(folder: Path, engine: str) -> DockerDouble:
    """Write the command; `engine` is Python code in which PORT stands for the published port."""
    (folder / "bin").mkdir(parents=True)
    (folder / "engine.py").write_text(engine)
    (folder / "calls.jsonl").touch()
    program = folder / "bin" / "docker"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P {Path(__file__).resolve()} "$@"\n')
    program.chmod(0o755)
    return DockerDouble(folder)


def _path(folder: Path, reference: str) -> Path:
    for path in folder.glob("*.container"):
        data = json.loads(path.read_text())
        if reference in (data["Id"], data["Id"][:12], data["Name"]):
            return path
    sys.exit(f"Error response from daemon: No such container: {reference}")


def _change(path: Path, **fields: Any) -> dict[str, Any]:
    data: dict[str, Any] = {**json.loads(path.read_text()), **fields}
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(data))
    temporary.replace(path)
    return data


def _run(folder: Path, words: Sequence[str]) -> None:
    options = [word for word in words if word.startswith("--")]
    value = dict(word[2:].partition("=")[::2] for word in options)
    number = len(list(folder.glob("*.log"))) + 1
    identity = f"{number:x}".rjust(64, "c")
    labels = dict(word.removeprefix("--label=").split("=", 1) for word in options if word.startswith("--label="))
    path = folder / f"{identity}.container"
    path.write_text(json.dumps({"Id": identity, "Name": value["name"], "Labels": labels, "Policy": value["restart"]}))
    _change(path, Status="created", RestartCount=0, ExitCode=0, Pid=0, StartedAt="", Asked=False)
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        _live(folder, path, value["publish"].split(":")[-2])
        os._exit(0)
    while json.loads(path.read_text())["Status"] == "created":
        time.sleep(0.01)
    print(identity)


def _live(folder: Path, path: Path, port: str) -> None:
    while True:
        code = (folder / "engine.py").read_text().replace("PORT", port)
        with path.with_suffix(".log").open("ab") as log:
            process = subprocess.Popen([sys.executable, "-c", code], stdout=log, stderr=log, start_new_session=True)
            _change(path, Status="running", Pid=process.pid, StartedAt=str(time.monotonic()))
            status = process.wait()
        data = json.loads(path.read_text())
        if data["Policy"] == "no" or data["Asked"]:
            _change(path, Status="exited", ExitCode=status if status >= 0 else 128 - status, Pid=0)
            return
        _change(path, Status="restarting", RestartCount=data["RestartCount"] + 1)
        time.sleep(0.05)


def _inspect(path: Path) -> None:
    data = json.loads(path.read_text())
    state = {name: data[name] for name in ("Status", "ExitCode", "Pid", "StartedAt")} | {
        "OOMKilled": False,
        "Error": "",
    }
    restart = {"RestartPolicy": {"Name": data["Policy"]}}
    shown = {"Id": data["Id"], "Name": "/" + data["Name"], "RestartCount": data["RestartCount"]}
    print(json.dumps([{**shown, "State": state, "HostConfig": restart}]))


def _logs(path: Path) -> None:
    with path.with_suffix(".log").open("rb") as log:
        while True:
            data = log.read()
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
            if not data and (not path.exists() or json.loads(path.read_text())["Status"] in ("exited", "restarting")):
                return
            time.sleep(0.02)


def _wait(path: Path) -> None:
    lives = json.loads(path.read_text())["RestartCount"]
    with path.with_suffix(".waits").open("a") as file:
        file.write("1\n")
    while path.exists():
        data = json.loads(path.read_text())
        if data["Status"] == "exited" or data["RestartCount"] > lives:
            print(data["ExitCode"])
            return
        time.sleep(0.02)


def _stop(path: Path) -> None:
    data = _change(path, Asked=True)
    if data["Pid"]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(data["Pid"], signal.SIGTERM)
    deadline = time.monotonic() + 5
    while json.loads(path.read_text())["Status"] != "exited":
        if time.monotonic() > deadline:
            os.killpg(data["Pid"], signal.SIGKILL)
        time.sleep(0.02)


def main(words: list[str]) -> None:
    """Do one docker command."""
    folder = Path(os.environ[STATE])
    with (folder / "calls.jsonl").open("a") as file:
        file.write(json.dumps(words) + "\n")
    if (folder / "stopped").exists():
        sys.exit(AWAY)
    match words:
        case ["run", *rest]:
            _run(folder, rest)
        case ["container", "inspect", reference]:
            _inspect(_path(folder, reference))
        case ["logs", *_, reference]:
            _logs(_path(folder, reference))
        case ["wait", reference]:
            _wait(_path(folder, reference))
        case ["update", policy, reference]:
            _change(_path(folder, reference), Policy=policy.partition("=")[2])
        case ["stop", _, reference]:
            _stop(_path(folder, reference))
        case ["rm", "--force", reference]:
            path = _path(folder, reference)
            _stop(path)
            path.unlink()
        case _:
            _of_the_daemon(folder, words)


def _of_the_daemon(folder: Path, words: list[str]) -> None:
    images = folder / "images"
    match words:
        case ["ps", *_]:
            for path in folder.glob("*.container"):
                data = json.loads(path.read_text())
                print(f"{data['Id']}\t{data['Labels'].get('redline.server', '')}")
        case ["image", "inspect", *_, image]:
            if not images.exists() or image not in images.read_text().split():
                sys.exit(f"Error response from daemon: No such image: {image}")
            print("sha256:0")
        case ["pull", image]:
            if "refused" in image:
                sys.exit(f"Error response from daemon: pull access denied for {image}, repository does not exist")
            print(f"latest: Pulling from {image}\nStatus: Downloaded newer image for {image}")
            with images.open("a") as file:
                file.write(image + "\n")
        case ["info", *_]:
            print(json.dumps({"ServerVersion": "28.2.2", "Runtimes": {"runc": {}}, "ServerErrors": None}))
        case _:
            sys.exit(f"docker: {words} is not played here")


if __name__ == "__main__":
    main(sys.argv[1:])
