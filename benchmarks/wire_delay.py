"""How much later a chunk is stamped by redline's client than it was written by the engine, on this machine.

    python benchmarks/wire_delay.py [--requests 20] [--streams 1] [--json]

The fake engine writes down CLOCK_MONOTONIC around each write; the client stamps on the same clock. Percentiles of the
difference over all chunks, in microseconds: what every time to first token includes and no decode rate does.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from redline.fake.spawn import fake_engine
from redline.fake.truth import Answered, Write, read_truth
from redline.probe.exchange import Exchange
from redline.probe.parse import read_exchange
from redline.probe.wire import exchange_bytes


async def ask(url: str, number: int) -> Exchange:
    """Stream one answer."""
    body = {
        "messages": [{"role": "user", "content": f"Tell me story number {number}."}],
        "max_tokens": 200,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return read_exchange(await exchange_bytes(f"{url}/v1/chat/completions", json.dumps(body).encode(), timeout_s=60))


async def ask_all(url: str, requests: int, streams: int) -> list[Exchange]:
    """Stream so many answers, so many at once."""
    found: list[Exchange] = []
    for first in range(0, requests, streams):
        found += await asyncio.gather(*(ask(url, number) for number in range(first, min(first + streams, requests))))
    return found


def delays_us(exchanges: list[Exchange], truth: Path) -> list[float]:
    """Return the delay of every chunk; a request is matched with the exchange that it was received for."""
    events = read_truth(truth)
    answered = sorted((event for event in events if isinstance(event, Answered)), key=lambda event: event.received_ns)
    writes: dict[int, list[Write]] = {}
    for event in events:
        if isinstance(event, Write) and event.tokens:
            writes.setdefault(event.request, []).append(event)
    found = []
    for exchange in exchanges:
        request = next(
            a for a in answered if a.received_ns >= exchange.sent_ns and len(writes[a.request]) == len(exchange.chunks)
        )
        answered.remove(request)
        pairs = zip(exchange.chunks, writes[request.request], strict=True)
        found += [(chunk.at_ns - write.before_ns) / 1000 for chunk, write in pairs]
    return sorted(found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder) / "truth.jsonl"
        with fake_engine("healthy-text-only", Path(folder) / "log", ("--truth", str(truth))) as fake:
            exchanges = asyncio.run(ask_all(fake.url, options.requests, options.streams))
        delays = delays_us(exchanges, truth)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    row = {name: round(delays[min(len(delays) - 1, int(share * len(delays)))], 1) for name, share in shares.items()}
    found = {"chunks": len(delays), "streams": options.streams, **{f"{name}_us": value for name, value in row.items()}}
    print(json.dumps(found) if options.json else "  ".join(f"{name} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
