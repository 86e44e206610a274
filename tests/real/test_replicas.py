"""Two real copies behind the real router: served as one, a copy killed, everything stopped as one."""

import http.client
import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx2
import psutil
import pytest
from tests.conftest import Home

from redline.ops.routed import read_workers
from redline.rig.ports import can_bind

pytestmark = pytest.mark.real
Port = Callable[[], int]


def by_role(home: Home) -> dict[str, dict[str, Any]]:
    return {row["role"]: row for row in home.json("ps")}


def chat(port: int, text: str, *, session: str = "s", key: str | None = None) -> httpx2.Response:
    headers = {"X-Session-ID": session, **({"Authorization": f"Bearer {key}"} if key else {})}
    body = {"model": "smollm2-135m", "messages": [{"role": "user", "content": text}], "max_tokens": 4}
    return httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, headers=headers, timeout=60)


def busy(url: str) -> float:
    for line in httpx2.get(f"{url}/metrics").text.splitlines():
        if line.startswith("llamacpp:requests_processing "):
            return float(line.split()[1])
    raise AssertionError("no such counter")


def wait(condition: Callable[[], object], limit_s: float = 30) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def kill_under_stream(
    connection: http.client.HTTPConnection, rows: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any], bytes]:
    """Begin a long stream, kill the copy that serves it, and return that copy and what was still read."""
    messages = [{"role": "user", "content": "Tell a very long story."}]
    body: dict[str, Any] = {"model": "smollm2-135m", "messages": messages, "max_tokens": 2000}
    body |= {"stream": True, "ignore_eos": True}
    headers = {"Content-Type": "application/json", "X-Session-ID": "long"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    with closing(connection.getresponse()) as answer:
        assert answer.status == 200
        assert answer.read(64)
        victim = next(rows[f"copy {number}"] for number in (1, 2) if busy(rows[f"copy {number}"]["url"]))
        os.kill(victim["pid"], signal.SIGKILL)
        try:
            return victim, answer.read()
        except http.client.IncompleteRead as error:
            return victim, error.partial


def test_copies_are_served_shown_and_stopped_as_one(real_home: Home, free_port: Port) -> None:
    port, secret = free_port(), "very-secret-key-5678"
    done = real_home.run("up", "--replicas", "2", "--port", str(port), "--no-measure", REDLINE_API_KEY=secret)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("4 of 4 applicable passed") == 3
    rows = by_role(real_home)
    assert set(rows) == {"copy 1", "copy 2", "router"}
    assert rows["router"]["url"].endswith(f":{port}")
    assert {row["group"] for row in rows.values()} == {rows["router"]["server_id"]}
    assert sorted(worker.url for worker in read_workers(rows["router"]["url"])) == sorted(
        rows[f"copy {number}"]["url"] for number in (1, 2)
    )
    assert chat(port, "hello").status_code == 401
    assert chat(port, "hello", key=secret).status_code == 200
    for row in rows.values():
        assert secret not in " ".join(psutil.Process(row["pid"]).cmdline())

    again = real_home.run("up", "--replicas", "2", "--port", str(port), "--no-measure", REDLINE_API_KEY=secret)
    assert "already running" in again.stdout
    assert {row["pid"] for row in by_role(real_home).values()} == {row["pid"] for row in rows.values()}
    assert real_home.run("ask", "hello", "--max-tokens", "4", REDLINE_API_KEY=secret).returncode == 0

    proofs = real_home.json("down")
    assert proofs[0]["port"] == port
    assert len(proofs) == 3
    assert all(proof["port_free"] for proof in proofs)
    assert not any(psutil.pid_exists(row["pid"]) for row in rows.values())
    for path in real_home.path.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_a_copy_killed_mid_stream_costs_that_stream_and_nothing_else(real_home: Home, free_port: Port) -> None:
    port = free_port()
    done = real_home.run("up", "--replicas", "2", "--port", str(port), "--no-measure")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = by_role(real_home)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        victim, rest = kill_under_stream(connection, rows)
    assert b"[DONE]" not in rest  # the stream that was cut does not pass for a whole one
    for number in range(4):
        answered = chat(port, f"hello {number}", session="long" if number % 2 else f"s{number}")
        assert answered.status_code == 200, answered.text
    wait(lambda: sum(worker.healthy for worker in read_workers(f"http://127.0.0.1:{port}")) == 1)
    left = by_role(real_home)
    assert set(left) == {"router", "copy 1", "copy 2"} - {
        role for role, row in rows.items() if row["pid"] == victim["pid"]
    }

    again = real_home.run("up", "--replicas", "2", "--port", str(port), "--no-measure")
    assert again.returncode == 0, again.stdout + again.stderr
    assert set(by_role(real_home)) == {"router", "copy 1", "copy 2"}
    assert len(read_workers(f"http://127.0.0.1:{port}")) == 2
    assert len(real_home.json("down")) == 3


def test_copies_whose_router_was_killed_are_stopped_together(real_home: Home, free_port: Port) -> None:
    port = free_port()
    assert real_home.run("up", "--replicas", "2", "--port", str(port), "--no-measure").returncode == 0
    rows = by_role(real_home)
    os.kill(rows["router"]["pid"], signal.SIGKILL)
    wait(lambda: set(by_role(real_home)) == {"copy 1", "copy 2"})
    assert len(real_home.json("down")) == 2
    assert real_home.json("ps") == []


def test_ctrl_c_while_copies_start_leaves_nothing(real_home: Home, free_port: Port) -> None:
    port = free_port()
    with real_home.start("up", "--replicas", "2", "--port", str(port), "--no-measure") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "loading" in line or "starting" in line:
                break
        pids = [row["pid"] for row in real_home.json("ps") if row["pid"]]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert real_home.json("ps") == []
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert can_bind("127.0.0.1", port)
