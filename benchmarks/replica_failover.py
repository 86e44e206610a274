"""Two copies of the embedded tier behind vllm-router; one copy is killed under load. What do clients see?

    python benchmarks/replica_failover.py [--requests 36] [--clients 4] [--port 8140]

Starts its own servers in a state folder of its own, on loopback, sends a bounded number of requests, and stops all
of it. A request may fail only if it was in flight when the copy was killed; one that fails and was not ends with 1.
"""

import argparse
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MAX_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as its client saw it; times are seconds of one monotonic clock. `fault` is None when it was whole."""

    number: int
    streamed: bool
    began_s: float
    ended_s: float
    fault: str | None


def redline(environ: dict[str, str], *words: str) -> Any:
    """Run a command of redline to its end and return its JSON."""
    argv = [sys.executable, "-m", "redline", *words, "--json"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


@contextmanager
def group(port: int) -> Iterator[dict[str, str]]:
    """Serve two copies behind a router for the block."""
    with tempfile.TemporaryDirectory() as state:
        environ = {**os.environ, "XDG_STATE_HOME": state}
        redline(environ, "up", "--replicas", "2", "--port", str(port), "--no-measure")
        try:
            yield environ
        finally:
            redline(environ, "down", "--all")


def ask(port: int, model: str, number: int) -> Sent:
    """Send one chat and read it to its end; every second one is streamed."""
    streamed = number % 2 == 1
    body = {
        "model": model,
        "messages": [{"role": "user", "content": f"Question {number}: count slowly from {number} upwards."}],
        "max_tokens": MAX_TOKENS,
        "stream": streamed,
    }
    began = time.monotonic()
    fault = None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        whole = "[DONE]" in text if streamed else "finish_reason" in text
        if answer.status != 200 or not whole:
            fault = f"status {answer.status}" if answer.status != 200 else "cut off"
    except (OSError, http.client.HTTPException) as error:
        fault = type(error).__name__
    finally:
        connection.close()
    return Sent(number, streamed, began, time.monotonic(), fault)


def load(port: int, model: str, requests: int, clients: int, copies: list[Any]) -> tuple[list[Sent], float, Any]:
    """Send all requests from several clients and kill a busy copy after a third of them.

    Return the requests, the moment of the kill, and the copy.
    """
    sent: list[Sent] = []
    lock, due = threading.Lock(), threading.Event()
    numbers = iter(range(requests))

    def client() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            done = ask(port, model, number)
            with lock:
                sent.append(done)
                if len(sent) >= requests // 3:
                    due.set()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    due.wait()
    victim = next(copy for copy in itertools.cycle(copies) if busy(copy["url"]) or not threads[0].is_alive())
    killed_s = time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    for thread in threads:
        thread.join()
    return sorted(sent, key=lambda item: item.began_s), killed_s, victim


def busy(url: str) -> bool:
    """Whether a copy works on a request, by its own counter."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().split("\n")
    connection.close()
    return any(line.startswith("llamacpp:requests_processing ") and float(line.split()[1]) > 0 for line in lines)


def workers(port: int) -> list[tuple[str, bool]]:
    """Return the copies as the router sees them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/workers")
    data = json.loads(connection.getresponse().read())
    return [(item["url"], item["is_healthy"]) for item in data["workers"]]


def main() -> None:
    """Run it and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=36)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--port", type=int, default=8140)
    options = parser.parse_args()
    if not (1 <= options.requests <= 200 and 1 <= options.clients <= 8):
        sys.exit("at most 200 requests and 8 clients: this is a check, not a load test")
    with group(options.port) as environ:
        copies = [row for row in redline(environ, "ps") if row["role"] != "router"]
        model = copies[0]["served_model"]
        sent, killed_s, victim = load(options.port, model, options.requests, options.clients, copies)
        seen = workers(options.port)
    in_flight = [item for item in sent if item.began_s <= killed_s <= item.ended_s]
    failed = [item for item in sent if item.fault]
    lost = [item for item in failed if item not in in_flight]
    after = [item for item in sent if item.began_s > killed_s]
    print(f"requests            {len(sent)} from {options.clients} clients, half of them streamed")
    answered = sum(item.ended_s < killed_s for item in sent)
    print(f"killed              {victim['role']}, {victim['url']}, after {answered} answers")
    print(f"in flight then      {len(in_flight)}, of them failed {len([i for i in failed if i in in_flight])}")
    for item in failed:
        print(f"  failed            request {item.number}, {'streamed' if item.streamed else 'whole'}: {item.fault}")
    print(f"begun afterwards    {len(after)}, of them failed {len([i for i in failed if i in after])}")
    print("router afterwards   " + ", ".join(f"{url} {'well' if well else 'not well'}" for url, well in seen))
    print(f"lost beyond those in flight: {len(lost)}")
    if not in_flight or not after:
        sys.exit("nothing was in flight, or nothing was asked afterwards: this run shows nothing")
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
