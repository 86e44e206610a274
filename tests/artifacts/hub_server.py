"""A hub of our own on loopback: the API of repositories, `resolve` with redirects, and a store of files beside it.

The hub and its store listen on two ports, as huggingface.co and its content network are two hosts. Behaviour follows
the headers that huggingface_hub 2.4.0 reads: X-Repo-Commit, X-Linked-Etag, X-Linked-Size, X-Error-Code, RateLimit.
"""

import functools
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

COMMIT = "b4c61732c4f2d8af323d75ba5702b5c7f3361539"
SIGNATURE = "X-Signature=abcdef0123456789"


def git_name(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Repo:
    """A repository at one commit. Files under `large` are LFS files and live in the store."""

    small: dict[str, bytes] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    commit: str = COMMIT
    gated: bool = False
    private: bool = False
    let_in: tuple[str, ...] = ()


@dataclass
class Refusal:
    """An answer given instead of the real one, once for each in `Hub.refusals`, or for ever with `always`."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    path: str = ""
    always: bool = False


@dataclass
class Hub:
    """What the hub holds, how it misbehaves next, and what it was asked."""

    url: str = ""
    store_url: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)
    blobs_listed: bool = True
    tampered: dict[str, list[bytes]] = field(default_factory=dict)  # path -> contents served in turn, then the real one
    cut_after: list[int] = field(default_factory=list)  # bytes after which the store hangs up, one a request
    ranges: bool = True
    hold_after: int | None = None  # bytes after which the store stands still until `go_on` is set
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    def requests(self, part: str) -> list[dict[str, str]]:
        """Return the headers of all GET requests whose path has a part."""
        return [headers for method, path, headers in self.asked if method == "GET" and part in path]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, hub: Hub, is_store: bool, *args: Any) -> None:
        self._hub, self._is_store = hub, is_store
        super().__init__(*args)

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        where = "store:" if self._is_store else ""
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._hub.asked.append((self.command, where + self.path, headers))
        for refusal in self._hub.refusals:
            if refusal.path in where + self.path:
                if not refusal.always:
                    self._hub.refusals.remove(refusal)
                return self._send(refusal.status, b"{}", refusal.headers)
        if self._is_store:
            return self._stored()
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/"):
            return self._api(path.removeprefix("/api/models/"))
        owner, name, _, revision, file = path.removeprefix("/").split("/", 4)
        return self._resolve(f"{owner}/{name}", revision, file)

    def _repo(self, name: str) -> Repo | None:
        """Return a repository the asker may see, or answer with why not."""
        repo, token = self._hub.repos.get(name), (self.headers["authorization"] or "").removeprefix("Bearer ")
        if repo is None or (repo.private and token not in repo.let_in):
            self._send(401 if not token else 404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return None
        return repo

    def _api(self, rest: str) -> None:
        name, _, revision = rest.partition("/revision/")
        repo = self._repo(name)
        if repo is None:
            return None
        if revision and revision != repo.commit:
            return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        files: list[dict[str, Any]] = []
        for path, data in {**repo.small, **repo.large}.items():
            item: dict[str, Any] = {"rfilename": path}
            if self._hub.blobs_listed:
                item |= {"size": len(data), "blobId": git_name(data)}
                if path in repo.large:
                    item["lfs"] = {"size": len(data), "sha256": sha256(data), "pointerSize": 134}
            files.append(item)
        info = {"id": name, "sha": repo.commit, "siblings": files, "private": False, "tags": [], "downloads": 0}
        return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _resolve(self, name: str, revision: str, path: str) -> None:
        repo = self._repo(name)
        if repo is None:
            return None
        token = (self.headers["authorization"] or "").removeprefix("Bearer ")
        if repo.gated and token not in repo.let_in:
            return self._send(403 if token else 401, b"{}", {"X-Error-Code": "GatedRepo"})
        if revision != repo.commit:
            return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        headers = {"X-Repo-Commit": repo.commit}
        if path in repo.small:
            return self._send(200, repo.small[path], {**headers, "ETag": f'"{git_name(repo.small[path])}"'})
        if path not in repo.large:
            return self._send(404, b"{}", {**headers, "X-Error-Code": "EntryNotFound"})
        data = repo.large[path]
        headers |= {"X-Linked-Etag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data))}
        headers |= {"Location": f"{self._hub.store_url}/{name}/{path}?{SIGNATURE}"}
        return self._send(302, b"", headers)

    def _stored(self) -> None:
        owner, name, path = self.path.partition("?")[0].removeprefix("/").split("/", 2)
        turn = self._hub.tampered.get(path)
        data = turn.pop(0) if turn else self._hub.repos[f"{owner}/{name}"].large[path]
        start, wanted = 0, self.headers["range"]
        if wanted and self._hub.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        body = data[start:]
        if self._hub.cut_after:
            self.wfile.write(body[: self._hub.cut_after.pop(0)])
            self.close_connection = True
            return
        if self._hub.hold_after is not None:
            self.wfile.write(body[: self._hub.hold_after])
            self.wfile.flush()
            self._hub.go_on.wait(60)
            body = body[self._hub.hold_after :]
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the reader was killed, as the test meant it to be

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """Serve a hub and its store until the block ends."""
    hub = Hub()
    servers = []
    for is_store in (False, True):
        handler = functools.partial(_Handler, hub, is_store)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
    hub.url, hub.store_url = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    try:
        yield hub
    finally:
        hub.go_on.set()
        for server in servers:
            server.shutdown()
            server.server_close()
