"""Do public tools measure what redline measures? Each against a known truth first, then in turns on a real server.

    python -m benchmarks.agreement --prepare            # once: the tools, each in an environment of its own; 1.6 GB
    python -m benchmarks.agreement --write docs/agreement.md
    python -m benchmarks.agreement --quick              # small numbers, to see that it works; not for the record

Three parts. The fake engine writes down when it wrote each token, so every tool's own error is known. A fast stream of
short and long runs gives the client's processor time a token, start-up left out. Then redline and the tools take turns
on the embedded tier without a drafter: same server, same number of tokens, one request at a time.

A tool takes seconds to start, so turns are half a minute apart, and the speed of two cores moves by more than 5 % in
that time, also by what the client itself does to them. The engine counts what it generated and for how long: each
turn's rate is held against the engine's own for the same turn, and tools are compared by that. Ends with 1 when two
tools' medians differ by more than 5 % so, or their intervals do not overlap.
"""

import argparse
import asyncio
import functools
import http.server
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.agreement_tools import TOOLS, VERSIONS, Job, Shot, prepare, run_tool

from redline.engine.counters import Counters, counters_delta
from redline.fake.spawn import fake_engine
from redline.fake.truth import Answered, read_truth
from redline.ops.reference import free_port
from redline.probe.client import Client
from redline.probe.target import Target
from redline.settings import load_settings
from redline.stats.interval import Estimate, estimate_mean
from redline.workload.corpus import Corpus

TIER: Final = "llamacpp/smollm2-135m-cpu-fast"
DEFINITIONS: Final = """\
- redline: (tokens - tokens of the first chunk) / (last token - first token), stamped when bytes arrive.
- aiperf: 1 / inter-token latency, which is (end of the request - first token) / (tokens - 1).
- llama-benchy: tokens spread evenly between the first and the last chunk with text, (n - 1) / their distance; other
  prompts than the other two (a book's text), which a tier without a drafter does not notice.
"""


def truth_of(path: Path, job: Job) -> tuple[list[float], list[float]]:
    """Return the rates and first tokens that the fake engine wrote, of the requests of a job's length, last ones."""
    rows = [row for row in read_truth(path) if isinstance(row, Answered) and row.completion_tokens == job.tokens]
    rates, firsts = [], []
    for row in rows[-job.requests :]:
        assert row.first_token_ns is not None
        assert row.last_token_ns is not None
        rates.append(1e9 * (row.completion_tokens - 1) / (row.last_token_ns - row.first_token_ns))
        firsts.append((row.first_token_ns - row.received_ns) / 1e9)
    return rates, firsts


@contextmanager
def book_server(folder: Path) -> Iterator[str]:
    """Serve a text for llama-benchy to take its prompts from, on this machine only."""
    (folder / "book.txt").write_text(Corpus("agreement").characters(60_000))
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/book.txt"
    finally:
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    log_message = lambda *_: None  # noqa: E731


@contextmanager
def embedded(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the real tier from a state folder of its own; yields address and model."""
    environ = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    models = str(load_settings().models_dir)
    environ |= {"MODEL_DIR": models, "PORT": str(free_port())}
    program = [sys.executable, "-P", "-m", "redline"]
    up = subprocess.run([*program, "up", TIER, "--no-measure", "--json"], env=environ, capture_output=True, check=True)
    try:
        said = json.loads(up.stdout)
        yield said["url"], said["served_model"]
    finally:
        subprocess.run([*program, "down", "--all"], env=environ, capture_output=True, check=False)


def against_truth(home: Path, folder: Path, book: str, requests: int, rounds: int) -> list[str]:
    """Return table rows: each tool's rate and first token over what the engine wrote."""
    errors: dict[str, tuple[list[float], list[float]]] = {tool: ([], []) for tool in TOOLS}
    settings = ["--dialect", "llamacpp", "--set", "speed.step_s=0.01"]
    for number in range(rounds):
        for tool in TOOLS[number % 3 :] + TOOLS[: number % 3]:
            truth = folder / f"truth-{tool}-{number}"
            with fake_engine("healthy-text-only", folder / "fake.log", [*settings, "--truth", str(truth)]) as fake:
                job = Job(fake.url, "redline-fake", requests, 96, 100 * number)
                shot = run_tool(tool, job, home, folder, book)
            rates, firsts = truth_of(truth, job)
            errors[tool][0].extend(got / true for got, true in zip(shot.rates, rates, strict=True))
            errors[tool][1].extend(1000 * (got - true) for got, true in zip(shot.firsts, firsts, strict=True))
            print(f"truth {number} {tool}: {statistics.median(errors[tool][0]):.4f}", flush=True)
    rows = []
    for tool, (rates, firsts) in errors.items():
        rate, first = estimate_mean(rates), estimate_mean(firsts)
        columns = f"{rate.median:.4f} | {words(rate, '.4f')} | {first.median:+.2f} | {words(first, '+.2f')}"
        rows.append(f"| {tool} | {rate.n} | {columns} |")
    return rows


def client_cost(home: Path, folder: Path, book: str, requests: int) -> list[str]:
    """Return table rows: processor time a token of each client, from a short and a long run of a fast stream."""
    costs = {}
    for tool in TOOLS:
        with fake_engine("healthy-text-only", folder / "fake.log", ["--set", "speed.step_s=0.002"]) as fake:
            jobs = [Job(fake.url, "redline-fake", count, 256, 7) for count in (2, requests)]
            shots = [run_tool(tool, job, home, folder, book) for job in jobs]
        costs[tool] = 1e6 * (shots[1].cpu_s - shots[0].cpu_s) / (shots[1].tokens - shots[0].tokens)
        print(f"cost {tool}: {costs[tool]:.0f} us", flush=True)
    return [f"| {tool} | {cost:.0f} | {costs['redline'] / cost:.2f} |" for tool, cost in costs.items() if cost > 0]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a tool on the real tier, and the engine's own decode rate over the same requests, tok/s."""

    shot: Shot
    engine: float


def take_turn(tool: str, job: Job, home: Path, folder: Path, book: str) -> Turn:
    """Run one tool on the real tier between two readings of the engine's counters."""
    before = engine_counts(job)
    shot = run_tool(tool, job, home, folder, book)
    delta = counters_delta(before, engine_counts(job))
    assert delta is not None
    assert delta.generated_tokens is not None
    assert delta.generation_seconds is not None
    # llama.cpp counts the first token of an answer, and from when it has it: one interval less than tokens.
    return Turn(shot, delta.generated_tokens / delta.generation_seconds * (job.tokens - 1) / job.tokens)


def engine_counts(job: Job) -> Counters:
    """Return the engine's counters."""

    async def read() -> Counters | None:
        async with Client(Target(url=job.url, model=job.model)) as client:
            return await client.counters()

    counters = asyncio.run(read())
    assert counters is not None, "the engine offers no counters"
    return counters


def on_the_tier(home: Path, folder: Path, book: str, requests: int, rounds: int) -> tuple[list[str], bool]:
    """Return table rows and whether all agree: tools in turns on the embedded tier, each round in another order."""
    turns: dict[str, list[Turn]] = {tool: [] for tool in TOOLS}
    with embedded(folder) as (url, model):
        for number in range(rounds):
            for tool in TOOLS[number % 3 :] + TOOLS[: number % 3]:
                turn = take_turn(tool, Job(url, model, requests, 128, 100 * number), home, folder, book)
                turns[tool].append(turn)
                print(f"tier {number} {tool}: {turn.shot.rate:.1f} tok/s, engine {turn.engine:.1f}", flush=True)
    rows, agree = [], True
    over = {tool: estimate_mean([turn.shot.rate / turn.engine for turn in found]) for tool, found in turns.items()}
    for tool, found in turns.items():
        own = statistics.median(turn.shot.rate for turn in found)
        engine = statistics.median(turn.engine for turn in found)
        apart = over[tool].median / over["redline"].median
        first = statistics.median(1000 * value for turn in found for value in turn.shot.firsts)
        agree &= (near := abs(apart - 1) <= 0.05 and overlap(over[tool], over["redline"]))
        unread = sum(turn.shot.unread for turn in found)
        rows.append(
            f"| {tool} | {rounds} x {requests} | {unread} | {own:.1f} | {engine:.1f} | {over[tool].median:.3f} | "
            f"{words(over[tool], '.3f')} | {apart:.3f} | {first:.0f} | {'yes' if near else 'NO'} |"
        )
    return rows, agree


def overlap(one: Estimate, other: Estimate) -> bool:
    """Whether two intervals have a value in common; without an interval, whether nothing speaks against it."""
    bounds = (one.low, one.high, other.low, other.high)
    return None in bounds or (one.low <= other.high and other.low <= one.high)  # type: ignore[operator]


def words(estimate: Estimate, form: str) -> str:
    """Return an interval."""
    return "-" if estimate.low is None else f"{estimate.low:{form}} to {estimate.high:{form}}"


PAGE: Final = """\
# Agreement with other tools

Written by `python -m benchmarks.agreement --write docs/agreement.md` after `--prepare`; tools: {versions}.

How each defines the decode rate:

{definitions}
## Against the truth

The fake engine at 100 tokens a second, 96 tokens, one request at a time: the rate over what the engine wrote down, and
how much later than its own first write the first token is told.

| tool | requests | rate over truth, median | mean, 95 % | first token, median ms | mean, 95 % |
|---|---|---|---|---|---|
{truth}

## What the client costs

Processor time a token at 500 tokens a second, start-up left out.

| tool | us a token | redline over it |
|---|---|---|
{cost}

## In turns on {tier_name}

128 tokens an answer. A turn's rate is tokens over time of its requests; the engine's own is what its counters say of
the same turn. "Over it" is one over the other turn by turn, its interval is over rounds, and "apart" is its median over
redline's. Where the plain rates differ, the engine's differ with them: it ran at another speed in those turns. "Agrees"
is: within 5 %, and the intervals overlap.

| tool | rounds x requests | unread | tok/s | engine's own | over it | mean, 95 % | apart | first token ms | agrees |
|---|---|---|---|---|---|---|---|---|---|
{tier}

{verdict}
"""


def main() -> int:
    """Prepare, or measure and print; write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--tools", type=Path, default=Path.home() / ".cache" / "redline" / "agreement")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.tools)
        return 0
    if not (options.tools / "tokenizer").is_dir():
        parser.error(f"there are no tools in {options.tools}: run it with --prepare first")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as text, book_server(Path(text)) as book:
        folder = Path(text)
        truth = against_truth(options.tools, folder, book, 3 if options.quick else 8, 1 if options.quick else 2)
        cost = client_cost(options.tools, folder, book, 6 if options.quick else 48)
        tier, agree = on_the_tier(options.tools, folder, book, 2 if options.quick else 6, 2 if options.quick else 5)
    page = PAGE.format(
        versions=", ".join(f"{name} {version}" for name, version in VERSIONS.items()),
        definitions=DEFINITIONS,
        truth="\n".join(truth),
        cost="\n".join(cost),
        tier="\n".join(tier),
        tier_name=TIER,
        verdict="All agree." if agree else "They do NOT agree.",
    )
    print(page)
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
