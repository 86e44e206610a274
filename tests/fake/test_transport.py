"""What goes wrong on the way, seen by a client that shares no code with redline."""

import json
import socket
import time
from typing import Any

import pytest

DIALECTS = pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])


def _raw(port: int, body: dict[str, Any], *, seconds: float, stop_at: int = 1 << 20) -> bytes:
    """Send a request and return what arrives within a time, or until so many bytes are there."""
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    received = b""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(head.encode() + data)
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline and len(received) < stop_at:
                part = connection.recv(65536)
                if not part:
                    break
                received += part
        except TimeoutError:
            pass
    return received


_BODY = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 60, "stream": True}


@DIALECTS
def test_a_truncated_stream_ends_inside(play: Any, dialect: str) -> None:
    with play("truncated-stream", "--dialect", dialect) as talk:
        found = talk.stream("Tell me a story.")
        assert not found.done
        assert not _raw(talk.fake.port, _BODY, seconds=10).endswith(b"0\r\n\r\n"), "no last chunk"
        assert (found.finish, found.usage) == (None, None)
        assert len(found.deltas("content")) == 5
        assert talk.get("/health")[0] == 200


@DIALECTS
def test_a_buffering_proxy_sends_one_piece(play: Any, dialect: str) -> None:
    with play("buffering-proxy", "--dialect", dialect) as talk:
        received = _raw(talk.fake.port, _BODY, seconds=10)
        sizes = received.partition(b"\r\n\r\n")[2].split(b"\r\n")[0]
        assert int(sizes, 16) > 2000, "all events in one chunk of the transfer encoding"
        found = talk.stream("Tell me a story.")
        assert (found.done, found.finish) == (True, "length")


def test_an_endless_stream_goes_on_until_the_client_leaves(play: Any) -> None:
    with play("endless-stream") as talk:
        received = _raw(talk.fake.port, _BODY, seconds=10, stop_at=60_000)
        assert len(received) >= 60_000
        assert b"[DONE]" not in received
        assert b'"finish_reason":"' not in received
        assert talk.get("/health")[0] == 200


@DIALECTS
def test_hangs_are_silent_and_leave_the_rest_working(play: Any, dialect: str) -> None:
    with play("hang-in-request", "--dialect", dialect) as talk:
        assert _raw(talk.fake.port, _BODY, seconds=0.4) == b""
        assert talk.get("/v1/models")[0] == 200
    with play("hang-mid-stream", "--dialect", dialect) as talk:
        received = _raw(talk.fake.port, _BODY, seconds=2.0)
        assert received.count(b"data: ") >= 3
        assert b"[DONE]" not in received
        assert talk.get("/health")[0] == 200


@DIALECTS
def test_an_error_under_status_200(play: Any, dialect: str) -> None:
    with play("error-in-200", "--dialect", dialect) as talk:
        status, body = talk.post("/v1/chat/completions", {**_BODY, "stream": False})
        assert status == 200
        assert "illegal memory access" in body["error"]["message"]
        found = talk.stream("Hi")
        assert found.status == 200
        assert "error" in found.events[0]


def test_html_on_every_path(play: Any) -> None:
    with play("html-instead-of-json") as talk:
        for method, path in (("GET", "/health"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
            status, body, headers = talk.request(method, path, {} if method == "POST" else None)
            assert (status, headers["content-type"].split(";")[0]) == (200, "text/html")
            assert "<html>" in body


@DIALECTS
def test_missing_and_false_usage(play: Any, dialect: str) -> None:
    with play("missing-usage", "--dialect", dialect) as talk:
        assert "usage" not in talk.chat("Hi")
        found = talk.stream("What is 1 + 1?")
        assert (found.usage, found.done) == (None, True)
        assert "2" in found.text
    with play("zero-tokens", "--dialect", dialect) as talk:
        body = talk.chat("What is 1 + 1?")
        assert body["usage"]["completion_tokens"] == 0
        assert "2" in body["choices"][0]["message"]["content"]


def test_a_client_that_leaves_frees_its_slot(play: Any) -> None:
    with play("healthy", "--set", "model.slots=1", "--set", "speed.step_s=0.05") as talk:
        _raw(talk.fake.port, {**_BODY, "max_tokens": 5000}, seconds=5, stop_at=500)
        assert "2" in talk.chat("What is 1 + 1?", max_tokens=10)["choices"][0]["message"]["content"]
