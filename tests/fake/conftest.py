"""A fake engine as a process, and a client that shares no code with redline: http.client and a socket."""

import contextlib
import http.client
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from redline.fake.spawn import FakeProcess, command, fake_engine, stop


@dataclass
class Streamed:
    """A stream as it came: events with their data, whether [DONE] was seen, whether the connection broke."""

    status: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    pieces: int = 0
    done: bool = False
    broken: bool = False

    def deltas(self, name: str) -> list[Any]:
        """Return the values of one delta field."""
        choices = [choice for event in self.events for choice in event.get("choices", [])]
        return [choice["delta"][name] for choice in choices if choice.get("delta", {}).get(name)]

    @property
    def text(self) -> str:
        return "".join(self.deltas("content"))

    @property
    def finish(self) -> str | None:
        reasons = [c.get("finish_reason") for event in self.events for c in event.get("choices", [])]
        return next((reason for reason in reasons if reason), None)

    @property
    def usage(self) -> dict[str, Any] | None:
        return next((event["usage"] for event in self.events if event.get("usage")), None)


@dataclass
class Talk:
    """Talks to one fake engine."""

    fake: FakeProcess

    def get(self, path: str) -> tuple[int, Any]:
        status, body, _ = self.request("GET", path)
        return status, body

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        status, answer, _ = self.request("POST", path, body)
        return status, answer

    def request(
        self, method: str, path: str, body: Any = None, timeout_s: float = 10.0
    ) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.fake.port, timeout=timeout_s)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            raw = response.read()
            headers = {name.lower(): value for name, value in response.getheaders()}
            is_json = "json" in headers.get("content-type", "")
            return response.status, json.loads(raw) if is_json and raw else raw.decode(), headers
        finally:
            connection.close()

    def chat(self, text: str, **extra: Any) -> dict[str, Any]:
        status, body = self.post("/v1/chat/completions", _body(text, extra))
        assert status == 200, body
        assert isinstance(body, dict)
        return body

    def stream(
        self, text: str, *, timeout_s: float = 10.0, path: str = "/v1/chat/completions", **extra: Any
    ) -> Streamed:
        connection = http.client.HTTPConnection("127.0.0.1", self.fake.port, timeout=timeout_s)
        found = Streamed()
        try:
            body = {"stream": True, "stream_options": {"include_usage": True}, **_body(text, extra)}
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            found.status = response.status
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                found.pieces += 1
                if line.strip() == b"data: [DONE]":
                    found.done = True
                else:
                    found.events.append(json.loads(line[6:]))
        except (http.client.HTTPException, ConnectionError, TimeoutError):
            found.broken = True
        finally:
            connection.close()
        return found

    def counters(self) -> dict[str, float]:
        """Return all samples, added up over labels."""
        from prometheus_client.parser import text_string_to_metric_families

        totals: dict[str, float] = {}
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
        return totals


def _body(text: str, extra: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 100, "temperature": 0, **extra}


Play = Callable[..., contextlib.AbstractContextManager[Talk]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Return a function that starts a scenario: `with play("healthy", "--set", "speed.step_s=0.001") as talk`."""

    @contextlib.contextmanager
    def start(scenario: str, *arguments: str) -> Iterator[Talk]:
        with fake_engine(scenario, tmp_path / "engine.log", arguments) as fake:
            yield Talk(fake)

    return start


@pytest.fixture(scope="module", params=["vllm", "llamacpp"])
def healthy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A healthy engine of each dialect, shared by a module."""
    folder = tmp_path_factory.mktemp("fake")
    arguments = ["--dialect", request.param, "--truth", str(folder / "truth.jsonl"), "--set", "speed.step_s=0.001"]
    with fake_engine("healthy", folder / "engine.log", arguments) as fake:
        yield Talk(fake)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Return a function that starts a scenario without waiting; everything is stopped in the end."""
    running: list[subprocess.Popen[bytes]] = []

    def start(scenario: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = tmp_path / f"{len(running)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command(scenario, arguments), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        running.append(process)
        return process, log

    yield start
    for process in running:
        stop(process)
