"""Boots, failures and ends, as processes."""

import http.client
import os
import signal
import socket
import time
from typing import Any

import pytest

from redline.fake.process import Options, _Engine
from redline.fake.scenario import load_scenario

DIALECTS = pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _status(port: int, path: str = "/health") -> int | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def _until(condition: Any, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@DIALECTS
@pytest.mark.parametrize(
    ("scenario", "status", "words"),
    [
        ("oom-weights", 1, "out of memory"),
        ("oom-kv-pool", 1, "kv cache"),
        ("oom-graph-capture", 1, "private pools"),
        ("killed-while-loading", 137, ""),
    ],
)
def test_boots_that_fail_end_with_the_engines_words(
    started: Any, scenario: str, status: int, words: str, dialect: str
) -> None:
    if dialect == "llamacpp" and scenario == "oom-graph-capture":
        process, log = started(scenario, "--dialect", dialect)
        assert process.wait(10) == 2
        assert "plays vllm, not llamacpp" in log.read_text()
        return
    process, log = started(scenario, "--dialect", dialect)
    assert process.wait(10) == status
    assert words in log.read_text().lower()


def test_a_crash_loop_lives_and_repeats_itself(started: Any) -> None:
    process, log = started("crash-loop")
    assert _until(lambda: log.read_text().count("vLLM server version") >= 3)
    assert process.poll() is None
    assert log.read_text().count("Error 804") >= 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) != 0
    lines = log.read_text().count("vLLM server version")
    assert not _until(lambda: log.read_text().count("vLLM server version") > lines, 0.3)


@DIALECTS
def test_a_hang_in_load_is_alive_and_not_ready(started: Any, dialect: str) -> None:
    port = _free_port()
    process, log = started("hang-in-load", "--dialect", dialect, "--port", str(port))
    last = "checkpoint shards:   0% Completed" if dialect == "vllm" else "init: loading model"
    assert _until(lambda: last in log.read_text())
    assert _until(lambda: _status(port) == (None if dialect == "vllm" else 503))
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 143


@DIALECTS
def test_a_slow_load_tells_how_far_it_is_and_then_serves(started: Any, dialect: str) -> None:
    port = _free_port()
    _, log = started("slow-load", "--dialect", dialect, "--port", str(port), "--set", "boot.slow_s=0.6")
    assert _until(lambda: "oading" in log.read_text())
    assert _status(port) == (None if dialect == "vllm" else 503)
    assert _until(lambda: _status(port) == 200)


@DIALECTS
def test_a_port_that_a_stranger_takes(started: Any, dialect: str) -> None:
    port = _free_port()
    process, log = started("port-stolen", "--dialect", dialect, "--port", str(port), "--set", "boot.stranger_s=1.0")
    assert process.wait(10) == 1
    assert _status(port) == 404, "the stranger answers"
    words = "Address already in use" if dialect == "vllm" else "couldn't bind HTTP server socket"
    assert words in log.read_text()
    assert _until(lambda: _status(port) is None), "the stranger leaves by itself"


@DIALECTS
def test_a_port_in_use_is_refused_in_the_engines_words(started: Any, dialect: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        process, log = started("healthy", "--dialect", dialect, "--port", str(holder.getsockname()[1]))
        assert process.wait(10) == 1
    assert "Address already in use" in log.read_text() or "couldn't bind" in log.read_text()


def test_sigterm_ends_a_healthy_engine_and_not_a_stubborn_one(play: Any) -> None:
    with play("healthy") as talk:
        talk.fake.process.send_signal(signal.SIGTERM)
        assert talk.fake.process.wait(5) == 0
        assert "Finished server process" in talk.fake.log_lines()[-1]
    with play("ignores-sigterm") as talk:
        talk.fake.process.send_signal(signal.SIGTERM)
        assert _until(lambda: any("SIGTERM" in line for line in talk.fake.log_lines()))
        assert talk.get("/health")[0] == 200
        os.killpg(talk.fake.process.pid, signal.SIGKILL)
        assert talk.fake.process.wait(5) == -signal.SIGKILL


def test_wrong_model_id(play: Any) -> None:
    with play("wrong-model-id") as talk:
        assert talk.get("/v1/models")[1]["data"][0]["id"] == "somebody-elses-model"
        body = {"model": "redline-fake", "messages": [{"role": "user", "content": "Hi"}]}
        status, answer = talk.post("/v1/chat/completions", body)
        assert status == 404
        assert "Valid aliases: somebody-elses-model" in answer["error"]["message"]


def test_logs_that_are_no_text_or_too_much(play: Any) -> None:
    with play("log-invalid-utf8") as talk:
        with pytest.raises(UnicodeDecodeError):
            talk.fake.log.read_text(encoding="utf-8")
        assert talk.get("/health")[0] == 200
    with play("log-huge-lines") as talk:
        assert max(map(len, talk.fake.log.read_bytes().split(b"\n"))) > 10_000_000
        assert talk.get("/health")[0] == 200


def test_an_engines_own_command_line_is_understood(started: Any) -> None:
    port = _free_port()
    engine = ("--", "serve", "models/x", f"--port={port}", "--served-model-name", "mine", "--max-model-len", "4096")
    started("healthy", *engine)
    assert _until(lambda: _status(port) == 200)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    connection.request("GET", "/v1/models")
    body = connection.getresponse().read()
    assert b'"id":"mine"' in body
    assert b'"max_model_len":4096' in body
    connection.close()


def test_no_token_waits_for_an_acknowledgement() -> None:
    sock = _Engine(Options(scenario=load_scenario("healthy"), dialect="vllm"))._bind()
    with sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
