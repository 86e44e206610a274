"""HTTP/1.1 over asyncio streams, as little as an engine needs. Knows nothing of what is asked or answered.

Written here and not taken from a library: the moment at which bytes go to the kernel must be in our hands, and every
misbehaviour (half a stream, silence, a body that is no JSON) must be possible.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_MAX_BODY: Final = 64 * 2**20
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read to its end. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Gone(Exception):  # noqa: N818 -- no error: the client has left, and what served it ends
    """The client closed the connection."""


class Response:
    """Writes one answer, whole or in pieces. Every write returns the monotonic stamps around it, in nanoseconds."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        headers: Mapping[str, str],
        *,
        keep_alive: bool,
    ) -> None:
        self._reader, self._writer, self._headers, self._keep_alive = reader, writer, headers, keep_alive
        self.started = False
        self.finished = False

    def whole(self, status: int, body: bytes, kind: str = "application/json") -> tuple[int, int]:
        """Send a complete answer."""
        self.started = self.finished = True
        head = self._head(status, {"content-type": kind, "content-length": str(len(body))})
        return self._send(head + body)

    def json(self, status: int, data: Any) -> tuple[int, int]:
        """Send a complete answer in JSON."""
        return self.whole(status, json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode())

    def begin(self, kind: str) -> tuple[int, int]:
        """Send the head of an answer in pieces."""
        self.started = True
        return self._send(self._head(200, {"content-type": kind, "transfer-encoding": "chunked"}))

    def piece(self, data: bytes) -> tuple[int, int]:
        """Send one piece, as one chunk of the transfer encoding.

        Raises:
            Gone: the client has left.
        """
        return self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> tuple[int, int]:
        """Send the last chunk."""
        self.finished = True
        return self._send(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection in the middle."""
        self.finished = True
        self._keep_alive = False
        self._writer.close()

    @property
    def reusable(self) -> bool:
        """Whether the connection can take another request."""
        return self._keep_alive and self.finished

    @property
    def gone(self) -> bool:
        """Whether the client has left; one that only ended its side counts as gone, as no client of ours does that."""
        return self._writer.is_closing() or self._reader.at_eof()

    async def until_gone(self) -> None:
        """Say nothing until the client leaves."""
        while not self.gone:  # noqa: ASYNC110 -- nothing signals a client's end
            await asyncio.sleep(0.05)

    def _head(self, status: int, headers: dict[str, str]) -> bytes:
        fields = {**self._headers, **headers, "connection": "keep-alive" if self._keep_alive else "close"}
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, '')}", *(f"{name}: {fields[name]}" for name in fields)]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def _send(self, data: bytes) -> tuple[int, int]:
        if self.gone:
            raise Gone
        before = time.monotonic_ns()
        self._writer.write(data)  # asyncio hands it to the kernel at once unless earlier bytes still wait
        return before, time.monotonic_ns()


Handler = Callable[[Request, Response], Awaitable[None]]


class HttpServer:
    """Listens and calls a handler for each request. `headers` go with every answer."""

    def __init__(self, handler: Handler, headers: Mapping[str, str]) -> None:
        self._handler, self._headers = handler, headers
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, sock: Any) -> None:
        """Serve on a socket that is bound."""
        self._server = await asyncio.start_server(self._accept, sock=sock, limit=2**20)

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._connection(reader, writer)
        except (Gone, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the server is being stopped
        finally:
            self._tasks.discard(task)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await _read(reader)
            if request is None:
                return
            keep_alive = request.headers.get("connection", "").lower() != "close"
            response = Response(reader, writer, self._headers, keep_alive=keep_alive)
            await self._handler(request, response)
            if not response.reusable:
                with contextlib.suppress(ConnectionError):
                    await writer.drain()
                return


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        return None
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name
    }
    size = min(int(headers.get("content-length", "0") or 0), _MAX_BODY)
    if headers.get("expect", "").lower() == "100-continue":
        return None
    return Request(parts[0], parts[1].partition("?")[0], headers, await reader.readexactly(size))
