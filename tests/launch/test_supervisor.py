"""The supervisor with engines that misbehave: real processes of a few lines each, written where they are used."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from redline.engine.launch_plan import LaunchPlan, Readiness, StagePattern, StopPolicy, launch_plan_from_dict
from redline.launch.server import follow, prune, register, start, stop
from redline.launch.state import ServerRecord, ServerState, list_servers, read_history, read_record
from redline.launch.supervisor import describe_plan
from redline.record.files import read_json

Port = Callable[[], int]


def make_plan(port: int, code: str, *, timeout_s: float = 20, grace_s: float = 0.5) -> LaunchPlan:
    return LaunchPlan(
        slug="test/engine",
        engine="llamacpp",
        engine_version="0",
        form="native",
        argv=(sys.executable, "-c", code),
        host="127.0.0.1",
        port=port,
        served_model="m",
        readiness=Readiness(model="m", timeout_s=timeout_s),
        stop=StopPolicy(grace_s=grace_s),
        stages=(StagePattern(stage="loading", text="loading weights"),),
    )


def boot(servers: Path, plan: LaunchPlan) -> tuple[Path, ServerRecord]:
    folder, _ = register(servers, plan)
    start(folder, dict(os.environ))
    for _ in follow(folder):
        pass
    record = read_record(folder)
    assert record is not None
    return folder, record


def test_a_plan_survives_the_disk(tmp_path: Path, free_port: Port) -> None:
    plan = make_plan(free_port(), "pass")
    (tmp_path / "plan.json").write_text(describe_plan(plan))
    assert launch_plan_from_dict(read_json(tmp_path / "plan.json") or {}) == plan


def test_an_engine_that_ends_at_once_is_known_at_once(tmp_path: Path, free_port: Port) -> None:
    started = time.monotonic()
    code = "print('loading weights', flush=True); print('boom'); raise SystemExit(3)"
    folder, record = boot(tmp_path, make_plan(free_port(), code, timeout_s=300))
    assert record.state is ServerState.FAILED
    assert record.reason == "the engine ended with exit status 3"
    assert time.monotonic() - started < 60  # a blind wait would be 300 s
    assert "boom" in (folder / "engine.log").read_text()
    states = [event["state"] for event in read_history(folder)]
    assert states == ["planned", "starting", "starting", "loading", "failed"]


def test_an_engine_that_cannot_be_started_is_a_failure_with_a_reason(tmp_path: Path, free_port: Port) -> None:
    plan = make_plan(free_port(), "pass")
    plan = launch_plan_from_dict({**read_plan(plan), "argv": ["/nonexistent/engine"]})
    _, record = boot(tmp_path, plan)
    assert record.state is ServerState.FAILED
    assert "could not be started" in (record.reason or "")


def read_plan(plan: LaunchPlan) -> dict[str, object]:
    import json

    loaded: dict[str, object] = json.loads(describe_plan(plan))
    return loaded


def test_an_engine_that_never_answers_runs_out_of_time(tmp_path: Path, free_port: Port) -> None:
    _, record = boot(tmp_path, make_plan(free_port(), "import time; time.sleep(600)", timeout_s=1))
    assert record.state is ServerState.FAILED
    assert "not ready within" in (record.reason or "")
    assert record.engine_process is not None
    assert not record.engine_process.alive()


WRONG_MODEL = """
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": [{"id": "another"}]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a): pass
http.server.HTTPServer(("127.0.0.1", PORT), H).serve_forever()
"""


def test_a_server_of_another_model_is_not_ready(tmp_path: Path, free_port: Port) -> None:
    port = free_port()
    _, record = boot(tmp_path, make_plan(port, WRONG_MODEL.replace("PORT", str(port))))
    assert record.state is ServerState.FAILED
    assert record.reason == "it serves another, not m"


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code])
print("child", child.pid, flush=True)
time.sleep(600)
"""


def test_an_engine_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path, free_port: Port) -> None:
    folder, _ = register(tmp_path, make_plan(free_port(), STUBBORN, timeout_s=300))
    start(folder, dict(os.environ))
    deadline = time.monotonic() + 20
    while "child" not in read_text(folder / "engine.log") and time.monotonic() < deadline:
        time.sleep(0.02)
    child = int(read_text(folder / "engine.log").split()[1])
    record = read_record(folder)
    assert record is not None
    stop(folder, record)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    ended = read_record(folder)
    assert ended is not None
    assert ended.state is ServerState.STOPPED
    assert ended.exit_code == -signal.SIGKILL


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_only_the_latest_ended_servers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: Port
) -> None:
    monkeypatch.setattr("redline.launch.server.KEPT_ENDED_SERVERS", 2)
    names = []
    for _ in range(4):
        folder, record = boot(tmp_path, make_plan(free_port(), "raise SystemExit(1)"))
        names.append(record.server_id)
        assert folder.name == record.server_id
    prune(tmp_path)
    assert [record.server_id for _, record in list_servers(tmp_path)] == names[-2:]
