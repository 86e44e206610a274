"""The supervisor with engines that misbehave: real processes of a few lines each."""

import json
import os
import signal
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from tests.launch.scripted import (
    GOOD,
    STUBBORN,
    Port,
    alive,
    boot,
    launch,
    log_words,
    make_plan,
    plan_json,
    record_of,
    wait_for,
    worker_pids,
)

from redline.engine.launch_plan import launch_plan_from_dict
from redline.launch.plan_file import describe_plan
from redline.launch.server import prune
from redline.launch.state import ServerState, list_servers, read_history
from redline.launch.stop import stop
from redline.record.files import read_json


def test_a_plan_survives_the_disk(tmp_path: Path, free_port: Port) -> None:
    plan = make_plan(free_port(), "pass", gpus=(0, 1))
    (tmp_path / "plan.json").write_text(describe_plan(plan))
    assert launch_plan_from_dict(read_json(tmp_path / "plan.json") or {}) == plan


def test_an_engine_that_ends_at_once_is_known_at_once(tmp_path: Path, free_port: Port) -> None:
    started = time.monotonic()
    code = "print('loading weights', flush=True); print('boom'); raise SystemExit(3)"
    folder, record = boot(tmp_path, make_plan(free_port(), code, timeout_s=300))
    assert record.state is ServerState.FAILED
    assert record.reason == "the engine ended with exit status 3"
    assert (record.exit_code, record.ended) == (3, True)
    assert time.monotonic() - started < 60  # a blind wait would be 300 s
    assert "boom" in (folder / "engine.log").read_text()
    states = [event["state"] for event in read_history(folder)]
    assert states[:2] == ["planned", "starting"]
    assert states[-2:] == ["loading", "failed"]


def test_an_engine_that_cannot_be_started_is_a_failure_with_a_reason(tmp_path: Path, free_port: Port) -> None:
    plan = launch_plan_from_dict({**plan_json(make_plan(free_port(), "pass")), "argv": ["/nonexistent/engine"]})
    _, record = boot(tmp_path, plan)
    assert record.state is ServerState.FAILED
    assert "/nonexistent/engine is no program here" in (record.reason or "")
    assert record.ended


def test_an_engine_that_never_answers_runs_out_of_time(tmp_path: Path, free_port: Port) -> None:
    code = "import time; print('loading weights', flush=True); time.sleep(600)"
    _, record = boot(tmp_path, make_plan(free_port(), code, timeout_s=1))
    assert record.state is ServerState.FAILED
    assert "not ready within" in (record.reason or "")
    assert "it got as far as loading" in (record.reason or "")
    assert record.engine_process is not None
    assert not record.engine_process.alive()


@pytest.mark.parametrize(("work", "verdict"), [("time.sleep(600)", "failed"), ("x = 1", "busy")])
def test_silence_without_work_is_a_hang_and_silence_with_work_is_not(
    tmp_path: Path, free_port: Port, work: str, verdict: str
) -> None:
    code = f"import time\nprint('loading weights', flush=True)\nwhile True:\n  {work}\n"
    plan = make_plan(free_port(), code, timeout_s=4 if verdict == "busy" else 300, silence_s=1.5)
    _, record = boot(tmp_path, plan)
    assert record.state is ServerState.FAILED
    wanted = "said and done nothing for 2 s while loading" if verdict == "failed" else "not ready within"
    assert wanted in (record.reason or "")


WRONG_MODEL = GOOD.replace('{"id": "m"}', '{"id": "another"}')


def test_a_server_of_another_model_is_not_ready(tmp_path: Path, free_port: Port) -> None:
    _, record = boot(tmp_path, make_plan(free_port(), WRONG_MODEL))
    assert record.state is ServerState.FAILED
    assert (record.reason or "").startswith("it serves another, not m")


CRASH_LOOP = """
import subprocess, sys, time
while True:
    subprocess.run([sys.executable, "-c", "print('engine build 1'); print('loading weights'); print('CUDA error 804')"])
    time.sleep(0.05)
"""


def test_an_engine_that_restarts_itself_is_a_crash_loop(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port(), CRASH_LOOP, timeout_s=300))
    assert record.state is ServerState.FAILED
    assert "began its life 3 times and was never ready (a crash loop)" in (record.reason or "")
    assert "CUDA error 804" in (folder / "engine.log").read_text()


def test_an_engine_that_ignores_sigterm_is_killed_with_its_children(tmp_path: Path, free_port: Port) -> None:
    folder = launch(tmp_path, make_plan(free_port(), STUBBORN, timeout_s=300))
    [[_, child]] = wait_for(lambda: log_words(folder, "child"))
    stop(folder, record_of(folder))
    assert not alive(int(child))
    ended = record_of(folder)
    assert (ended.state, ended.exit_code, ended.ended) == (ServerState.STOPPED, -signal.SIGKILL, True)


def test_workers_that_left_the_group_and_lost_their_parent_are_ended_too(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()), WORKERS="2")
    assert record.state is ServerState.READY
    workers = worker_pids(folder, 2)
    assert [alive(pid) for pid in workers] == [True, True]
    stop(folder, record)
    assert [alive(pid) for pid in workers] == [False, False]


def test_requests_in_flight_are_waited_for_and_no_longer_than_said(tmp_path: Path, free_port: Port) -> None:
    port = free_port()
    folder, record = boot(tmp_path, make_plan(port))
    answers: list[str] = []

    def ask(seconds: float) -> threading.Thread:
        data = json.dumps({"seconds": seconds}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", data)

        def work() -> None:
            with urllib.request.urlopen(request, timeout=30) as answer:
                answers.append(answer.read().decode())

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    asking = ask(1.0)
    wait_for(lambda: "processing 1" in get(port, "/metrics"))
    proof = stop(folder, record)
    asking.join()
    assert "hello" in answers[0]
    assert proof.port_free
    texts = [event["text"] for event in read_history(folder)]
    assert "waiting for 1 request, 5 s at most" in texts
    assert texts[-1] == "stopped on request"


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        text: str = answer.read().decode()
    return text


def test_a_stop_now_waits_for_nobody(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port(), grace_s=30))
    stop(folder, record, now=True)
    ended = record_of(folder)
    assert (ended.state, ended.exit_code) == (ServerState.STOPPED, -signal.SIGKILL)


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


def test_an_engine_gets_the_secrets_it_names_and_no_others(tmp_path: Path, free_port: Port) -> None:
    code = "import os; print('key', os.environ.get('ENGINE_KEY'), os.environ.get('REDLINE_API_KEY'), flush=True)"
    plan = make_plan(free_port(), code, secret_env=("ENGINE_KEY",), secret_aliases={"ENGINE_KEY": "REDLINE_API_KEY"})
    folder, _ = boot(tmp_path, plan, REDLINE_API_KEY="very-secret")
    assert log_words(folder, "key") == [["key", "very-secret", "None"]]
    assert "very-secret" not in (folder / "plan.json").read_text() + (folder / "server.json").read_text()
    assert os.environ.get("REDLINE_API_KEY") is None
