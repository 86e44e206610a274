"""What reading streams costs this machine: redline's measuring client against httpx2, interleaved in one run.

    python benchmarks/client_cpu.py [--seconds 8] [--rounds 3]

Paced: 32 streams of 57 chunks a second, one chunk a write; figure is the share of one core. Flat out: one stream as
fast as it comes, 20,000 chunks; figure is microseconds of CPU a chunk, reading and parsing after the end included.
A process of its own plays the server, so that only the client's CPU is counted.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection

import httpx2

from redline.probe.parse import read_exchange
from redline.probe.wire import exchange_bytes

STREAMS, CHUNKS_A_SECOND, FLAT_CHUNKS = 32, 57, 20_000
EVENT = (
    b"data: "
    + json.dumps(
        {
            "id": "chatcmpl-0123456789abcdef0123456789abcdef",
            "object": "chat.completion.chunk",
            "created": 1795979370,
            "model": "qwen3.8-27b",
            "choices": [{"index": 0, "delta": {"content": " harbour"}, "logprobs": None, "finish_reason": None}],
        }
    ).encode()
)
CHUNK = f"{len(EVENT) + 2:x}\r\n".encode() + EVENT + b"\n\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TAIL = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play one stream: the path says how many chunks and how many a second (0: as fast as they go)."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, count, rate = head.split(b" ")[1].decode().split("/")
    writer.write(HEAD)
    started = time.monotonic()
    for number in range(int(count)):
        writer.write(CHUNK)
        if int(rate):
            await asyncio.sleep(max(0.0, started + (number + 1) / int(rate) - time.monotonic()))
        elif number % 50 == 0:
            await writer.drain()
    writer.write(TAIL)
    await writer.drain()
    writer.close()


def serve(pipe: Connection) -> None:
    """Serve until the process is ended; the port goes back through the pipe."""

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def read_with_redline(url: str, streams: int) -> None:
    """Read streams with the measuring client, parsing included."""
    captures = await asyncio.gather(*(exchange_bytes(url, b"{}", timeout_s=120) for _ in range(streams)))
    for capture in captures:
        exchange = read_exchange(capture)
        assert exchange.error is None, exchange.error


async def read_with_httpx2(url: str, streams: int) -> None:
    """Read streams with httpx2 the usual way: lines, and JSON of each."""

    async def one(client: httpx2.AsyncClient) -> None:
        async with client.stream("POST", url, content=b"{}") as response:
            async for line in response.aiter_lines():
                if line.startswith("data:") and "[DONE]" not in line:
                    time.monotonic_ns()
                    json.loads(line[5:])

    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=120, trust_env=False, limits=limits) as client:
        await asyncio.gather(*(one(client) for _ in range(streams)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    base = f"http://127.0.0.1:{ours.recv()}"
    readers = {"redline": read_with_redline, "httpx2": read_with_httpx2}
    paced: dict[str, list[float]] = {name: [] for name in readers}
    flat: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(options.rounds):
        for name, read in readers.items():
            began, cpu = time.monotonic(), time.process_time()
            asyncio.run(read(f"{base}/{options.seconds * CHUNKS_A_SECOND}/{CHUNKS_A_SECOND}", STREAMS))
            paced[name].append((time.process_time() - cpu) / (time.monotonic() - began))
            cpu = time.process_time()
            asyncio.run(read(f"{base}/{FLAT_CHUNKS}/0", 1))
            flat[name].append((time.process_time() - cpu) / FLAT_CHUNKS * 1e6)
    server.terminate()
    print(f"{STREAMS} streams x {CHUNKS_A_SECOND} chunks/s for {options.seconds} s, n={options.rounds}")
    for name in readers:
        share, micros = statistics.median(paced[name]), statistics.median(flat[name])
        print(f"{name:<8} paced {share:6.1%} of a core   flat out {micros:6.1f} us a chunk")
    ratios = [a / b for a, b in zip(paced["redline"], paced["httpx2"], strict=True)]
    print(f"ratio redline/httpx2, paced: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
