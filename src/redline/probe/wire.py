"""Bytes on a socket with the time each arrived. Knows when a response is over, and nothing of what it says.

While bytes arrive only a stamp is taken and a reference kept; everything else is done after the stream has ended, so
that measuring a fast server costs its machine next to nothing. The request says `Connection: close`, so the end of
the response is the end of the connection.
"""

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from redline.probe.exchange import ErrorKind, ExchangeError

MAX_RESPONSE_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes as the kernel handed them over, and when."""

    at_ns: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Capture:
    """Everything that arrived for one request. `error` is set when the connection did not end by itself."""

    sent_ns: int
    end_ns: int
    segments: tuple[Segment, ...]
    error: ExchangeError | None = None


class _Recorder(asyncio.Protocol):
    """Stamps and keeps; the future ends with the connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stamps: list[int] = []
        self.parts: list[bytes] = []
        self.size = 0
        self.closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.stamps.append(time.monotonic_ns())
        self.parts.append(data)
        self.size += len(data)
        if self.size > MAX_RESPONSE_BYTES and self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


async def exchange_bytes(
    url: str,
    body: bytes,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    timeout_s: float,
    connect_timeout_s: float = 2.0,
) -> Capture:
    """POST a JSON body and capture the whole response. Never raises for what the server does; cancel to stop early."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    loop = asyncio.get_running_loop()
    started_ns = time.monotonic_ns()
    try:
        transport, recorder = await asyncio.wait_for(
            loop.create_connection(
                lambda: _Recorder(loop), host, port, ssl=ssl.create_default_context() if secure else None
            ),
            connect_timeout_s,
        )
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "no answer"
        failure = ExchangeError(kind=ErrorKind.CONNECT, message=f"{host}:{port}: {reason}")
        return Capture(started_ns, time.monotonic_ns(), (), failure)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Accept: text/event-stream",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers),
    ]
    request = "\r\n".join(head).encode() + b"\r\n\r\n" + body
    sent_ns = time.monotonic_ns()
    transport.write(request)
    ended_badly: ExchangeError | None = None
    try:
        await asyncio.wait_for(recorder.closed, timeout_s)
    except TimeoutError:
        ended_badly = ExchangeError(kind=ErrorKind.TIMEOUT, message=f"no end after {timeout_s:g} s")
    finally:
        transport.abort()
    if recorder.size > MAX_RESPONSE_BYTES:
        ended_badly = ExchangeError(kind=ErrorKind.PROTOCOL, message=f"response larger than {MAX_RESPONSE_BYTES} bytes")
    segments = tuple(Segment(at, data) for at, data in zip(recorder.stamps, recorder.parts, strict=True))
    return Capture(sent_ns, time.monotonic_ns(), segments, ended_badly)
