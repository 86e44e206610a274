"""Engines of a few lines each, for tests: real processes, real sockets. And plans that start them."""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from redline.engine.launch_plan import LaunchPlan, Readiness, StagePattern, StopPolicy
from redline.launch.server import follow, register, start
from redline.launch.state import ServerRecord, read_record

Port = Callable[[], int]

# An OpenAI-compatible server small enough to read. Its behaviour is set by names in the environment.
GOOD = """
import http.server, json, os, signal, subprocess, sys, threading, time
busy = 0
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, value, kind="application/json"):
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(200); self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if self.path == "/metrics":
            return self.answer(f"llamacpp:requests_processing {busy}\\nllamacpp:requests_deferred 0\\n", "text/plain")
        self.answer({"data": [{"id": "m"}]})
    def do_POST(self):
        global busy
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        busy += 1
        time.sleep(float(body.get("seconds", 0)))
        self.answer({"choices": [{"message": {"role": "assistant", "content": "hello"}}]})
        busy -= 1
    def log_message(self, *a): pass
print("engine build 1", flush=True)
print("loading weights", flush=True)
for number in range(int(os.environ.get("WORKERS", "0"))):
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=number % 2 == 1)
    print("worker", worker.pid, flush=True)
time.sleep(float(os.environ.get("LOAD_S", "0")))
signal.signal(signal.SIGTERM, lambda *a: os._exit(0))
server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), H)
print("listening", flush=True)
server.serve_forever()
"""
# An engine that hears no SIGTERM, with a child that does not either.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code])
print("child", child.pid, flush=True)
time.sleep(600)
"""


def make_plan(port: int, code: str = GOOD, **changes: Any) -> LaunchPlan:
    """Return the plan of a scripted native engine; `changes` are fields of it, its readiness or its stop policy."""
    readiness = {"model": "m", "timeout_s": changes.pop("timeout_s", 20), "silence_s": changes.pop("silence_s", 60)}
    stop = {"grace_s": changes.pop("grace_s", 0.5), "drain_s": changes.pop("drain_s", 5.0)}
    plan = LaunchPlan(
        slug="test/engine",
        engine="llamacpp",
        engine_version="0",
        form="native",
        argv=(sys.executable, "-c", code.replace("PORT", str(port))),
        host="127.0.0.1",
        port=port,
        served_model="m",
        boot_markers=("engine build", "another mark"),
        readiness=Readiness(**readiness),
        stop=StopPolicy(**stop),
        stages=(
            StagePattern(stage="loading", text="loading weights"),
            StagePattern(stage="loading", text="shards", progress=r"(?P<percent>\d+)% Completed"),
            StagePattern(stage="listening", text="listening"),
        ),
    )
    return replace(plan, **changes)


def launch(servers: Path, plan: LaunchPlan, **environ: str) -> Path:
    """Start a plan and return its folder at once."""
    folder, _ = register(servers, plan)
    start(folder, {**os.environ, **environ})
    return folder


def boot(servers: Path, plan: LaunchPlan, **environ: str) -> tuple[Path, ServerRecord]:
    """Start a plan and follow it until it is ready or over."""
    folder = launch(servers, plan, **environ)
    for _ in follow(folder):
        pass
    return folder, record_of(folder)


def record_of(folder: Path) -> ServerRecord:
    """Return the state on disk."""
    record = read_record(folder)
    assert record is not None
    return record


def wait_for(condition: Callable[[], Any], limit_s: float = 20.0) -> Any:
    """Poll until the condition holds and return its value."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    pytest.fail("the state that the test waits for never came")


def log_words(folder: Path, first: str) -> list[list[str]]:
    """Return the words of the log's whole lines that begin with a word."""
    try:
        lines = (folder / "engine.log").read_text(errors="replace").splitlines(keepends=True)
    except OSError:
        return []
    return [line.split() for line in lines if line.startswith(first) and line.endswith("\n")]


def worker_pids(folder: Path, count: int) -> list[int]:
    """Return the workers that an engine names in its log, once it has named all of them."""
    lines = wait_for(lambda: len(found := log_words(folder, "worker")) == count and found)
    return [int(words[1]) for words in lines]


def plan_json(plan: LaunchPlan) -> dict[str, Any]:
    """Return a plan as its file holds it."""
    from redline.launch.plan_file import describe_plan

    loaded: dict[str, Any] = json.loads(describe_plan(plan))
    return loaded


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
