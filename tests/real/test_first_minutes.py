"""The first five minutes, with the real command, the real server and the real model."""

import json
import re
import signal
from collections.abc import Callable

import httpx2
import psutil
import pytest
from tests.conftest import Home

from redline.bench.quick import QuickRegime
from redline.record.reading import read_events
from redline.rig.ports import can_bind

pytestmark = pytest.mark.real
Port = Callable[[], int]


def test_up_serves_proves_measures_and_says_what_next(real_home: Home, free_port: Port) -> None:
    port = free_port()
    done = real_home.run("up", "--port", str(port))
    assert done.returncode == 0, done.stdout + done.stderr
    out = done.stdout
    assert "llamacpp/smollm2-135m-cpu-fast" in out
    assert re.search(r"files +SmolLM2-135M-Instruct Q4_0 +78 MB +verified", out)
    assert re.search(r"plan +0\.\d of [\d.]+ GiB, context 8192 +fits", out)
    assert re.search(r"start +loading [\d.]+ s .* ready in [\d.]+ s", out)
    assert "4 of 4 applicable passed (drafting, tools, thinking, vision: not offered)" in out
    for kind in ("prose", "code"):
        assert re.search(rf"speed +{kind} +[\d.]+ tok/s \+-[\d.]+ \(n=\d+\)", out)
    assert f"http://127.0.0.1:{port}/v1" in out
    # The curl line is what a newcomer pastes: its body must be what the server takes.
    body = re.search(r"-d '(\{.*\})'", out)
    assert body is not None
    answer = httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=json.loads(body[1]) | {"max_tokens": 8})
    assert answer.json()["choices"][0]["message"]["content"]
    # Only commands that exist are recommended.
    for command in re.findall(r"redline (\w+)", out[out.index("next") :]):
        assert real_home.run(command, "--help").returncode == 0

    [row] = real_home.json("ps")
    assert row["slug"] == "llamacpp/smollm2-135m-cpu-fast"
    assert row["state"] == "ready"
    assert psutil.pid_exists(row["pid"])
    assert real_home.json("ask", "What is the capital city of France?")["answer"].strip()

    again = real_home.run("up", "--port", str(port))
    assert again.returncode == 0
    assert "already running" in again.stdout
    assert real_home.json("ps")[0]["pid"] == row["pid"]

    lines = real_home.json("logs", "-n", "5000")["lines"]
    assert any("loading model" in line for line in lines)
    runs = real_home.json("runs")
    assert [run["command"] for run in runs] == ["up"]
    assert runs[0]["outcome"] == "complete"
    kinds = [event.kind for event in read_events(real_home.settings.runs_dir / runs[0]["run_id"])]
    assert kinds.count("check.result") == 8
    assert kinds.count("bench.sample") == 12
    assert kinds[0] == "server.started"
    assert kinds[-1] == "run.finished"

    [proof] = real_home.json("down")
    assert proof["port_free"] is True
    assert proof["released_bytes"] > 100_000_000
    assert not psutil.pid_exists(row["pid"])
    assert can_bind("127.0.0.1", port)
    assert real_home.json("ps") == []


def test_another_tier_replaces_the_first_and_drafts(real_home: Home, free_port: Port) -> None:
    first, second = free_port(), free_port()
    assert real_home.run("up", "--port", str(first), "--no-measure").returncode == 0
    [before] = real_home.json("ps")
    done = real_home.run("switch", "smollm2-135m-cpu-superfast", "--port", str(second), "--no-measure")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"stopping llamacpp/smollm2-135m-cpu-fast on port {first}" in done.stdout
    assert "5 of 5 applicable passed" in done.stdout
    [after] = real_home.json("ps")
    assert after["slug"] == "llamacpp/smollm2-135m-cpu-superfast"
    assert not psutil.pid_exists(before["pid"])
    assert can_bind("127.0.0.1", first)

    report = real_home.json("verify")
    drafting = next(row for row in report["results"] if row["check_id"] == "spec.acceptance")
    assert drafting["status"] == "pass"
    assert drafting["metrics"]["mean_length"] > 1.05
    measured = real_home.json("bench", "--quick", "--class", "edit")
    [summary] = measured["summaries"]
    assert summary["decode_tok_s"]["n"] == QuickRegime().per_class
    assert summary["decode_tok_s"]["low"] < summary["decode_tok_s"]["mean"] < summary["decode_tok_s"]["high"]
    assert summary["acceptance_length"] > 1


def test_beside_stops_nothing(real_home: Home, free_port: Port) -> None:
    first, second = free_port(), free_port()
    assert real_home.run("up", "--port", str(first), "--no-measure").returncode == 0
    done = real_home.run("up", "smollm2-135m-cpu-max", "--port", str(second), "--no-measure", "--beside")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(real_home.json("ps")) == 2
    unclear = real_home.run("ask", "hello")
    assert unclear.returncode == 3
    assert "Name one of them" in unclear.stderr
    assert len(real_home.json("down", "--all")) == 2


def test_any_endpoint_can_be_verified_by_its_url(real_home: Home, free_port: Port) -> None:
    port = free_port()
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0
    report = real_home.json("verify", "--url", f"http://127.0.0.1:{port}/v1", "--model", "smollm2-135m")
    by_id = {row["check_id"]: row["status"] for row in report["results"]}
    assert by_id["chat.basic"] == "pass"
    assert by_id["stream.granularity"] == "pass"


def test_a_key_is_asked_for_and_never_shown(real_home: Home, free_port: Port) -> None:
    port, secret = free_port(), "very-secret-key-1234"
    done = real_home.run("up", "--port", str(port), "--no-measure", REDLINE_API_KEY=secret)
    assert done.returncode == 0, done.stdout + done.stderr
    bare = httpx2.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={"messages": []})
    assert bare.status_code == 401
    assert real_home.run("ask", "hello", REDLINE_API_KEY=secret).returncode == 0
    [row] = real_home.json("ps")
    assert secret not in " ".join(psutil.Process(row["pid"]).cmdline())
    for path in real_home.path.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_logs_follow_ends_with_ctrl_c(real_home: Home, free_port: Port) -> None:
    assert real_home.run("up", "--port", str(free_port()), "--no-measure").returncode == 0
    with real_home.start("logs", "-f") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode == 130
