"""Do public tools measure what redline measures? Each against a known truth first, then in turns on a real server.

    python benchmarks/agreement.py --prepare            # once: the tools, each in an environment of its own; 1.6 GB
    python benchmarks/agreement.py --write docs/agreement.md
    python benchmarks/agreement.py --quick              # small numbers, to see that it works; not for the record

Three parts. The fake engine writes down when it wrote each token, so every tool's own error is known. A fast stream of
short and long runs gives the client's processor time a token, start-up left out. Then redline and the tools take turns
on the embedded tier without a drafter: same server, same number of tokens, one request at a time. Ends with 1 when
intervals do not overlap or medians differ by more than 5 % on the real tier.
"""

import argparse
import asyncio
import functools
import http.server
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redline.fake.spawn import fake_engine
from redline.fake.truth import Answered, read_truth
from redline.ops.reference import free_port
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import ChatRequest
from redline.probe.target import Target
from redline.settings import load_settings
from redline.stats.interval import Estimate, estimate_mean, estimate_ratio
from redline.workload.corpus import Corpus
from redline.workload.prompts import PromptClass, prompts

VERSIONS: Final = {"aiperf": "0.13.0", "llama-benchy": "0.4.0"}
TOOLS: Final = ("redline", "aiperf", "llama-benchy")
TIER: Final = "llamacpp/smollm2-135m-cpu-fast"
MODEL_FILE: Final = "smollm2-135m-instruct-q4_0/SmolLM2-135M-Instruct.Q4_0.gguf"
DEFINITIONS: Final = """\
- redline: (tokens - tokens of the first chunk) / (last token - first token), stamped when bytes arrive.
- aiperf: 1 / inter-token latency, which is (end of the request - first token) / (tokens - 1).
- llama-benchy: tokens spread evenly between the first and the last chunk with text, (n - 1) / their distance; other
  prompts than the other two (a book's text), which a tier without a drafter does not notice.
"""


@dataclass(slots=True)
class Shot:
    """One invocation of a tool: rates in tok/s and first tokens in seconds by request, processor seconds in all."""

    tool: str
    rates: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """What a tool is to do: so many requests of so many tokens, one at a time; `offset` picks the prompts."""

    url: str
    model: str
    requests: int
    tokens: int
    offset: int


def asked(job: Job) -> list[str]:
    """Return a job's prompts, none twice in a round."""
    found = [
        prompt.text for kind in (PromptClass.PROSE, PromptClass.CHAT, PromptClass.CODE) for prompt in prompts(kind, 1)
    ]
    return [f"{found[(job.offset + at) % len(found)]} (case {job.offset + at})" for at in range(job.requests)]


def run_tool(tool: str, job: Job, home: Path, folder: Path, book: str) -> Shot:
    """Run one tool in a process of its own and read what it says of each request."""
    with tempfile.TemporaryDirectory() as scratch:
        made = {"redline": _redline, "aiperf": _aiperf, "llama-benchy": _benchy}[tool]
        command, read = made(job, home, Path(scratch), book)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        log = folder / f"{tool}.log"
        with log.open("ab") as output:
            environ = {**os.environ, "HOME": scratch, "PYTHONHASHSEED": "0"}
            done = subprocess.run(command, stdout=output, stderr=output, env=environ, cwd=scratch, check=False)
        if done.returncode:
            raise SystemExit(f"{tool} ended with {done.returncode}; its last words: {log.read_text()[-800:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        shot: Shot = read()
    shot.tool, shot.tokens = tool, job.requests * job.tokens
    shot.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return shot


def _redline(job: Job, _home: Path, scratch: Path, _book: str) -> tuple[list[str], Any]:
    words = [job.url, job.model, str(job.requests), str(job.tokens), str(job.offset), str(scratch / "out.json")]

    def read() -> Shot:
        data = json.loads((scratch / "out.json").read_text())
        return Shot("redline", data["rates"], data["firsts"])

    return [sys.executable, __file__, "--arm", *words], read


def _aiperf(job: Job, home: Path, scratch: Path, _book: str) -> tuple[list[str], Any]:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in asked(job))
    (scratch / "prompts.jsonl").write_text(lines)
    extra = {"max_tokens": job.tokens, "temperature": 0, "ignore_eos": True, "seed": 1}

    def read() -> Shot:
        rows = [json.loads(line)["metrics"] for line in next(scratch.rglob("profile_export.jsonl")).open()]
        spans = [(row["request_latency"]["value"] - row["time_to_first_token"]["value"]) / 1000 for row in rows]
        made = [row["output_sequence_length"]["value"] for row in rows]
        firsts = [row["time_to_first_token"]["value"] / 1000 for row in rows]
        return Shot("aiperf", [(n - 1) / span for n, span in zip(made, spans, strict=True)], firsts)

    command = [
        str(home / "aiperf/bin/aiperf"), "profile", "-m", job.model, "-u", job.url, "--endpoint-type", "chat",
        "--streaming", "--input-file", str(scratch / "prompts.jsonl"), "--custom-dataset-type", "single_turn",
        "--dataset-sampling-strategy", "sequential", "--request-count", str(job.requests), "--concurrency", "1",
        "--use-server-token-count", "--use-legacy-max-tokens", "--extra-inputs", json.dumps(extra),
        "--tokenizer", str(home / "tokenizer"), "--ui", "simple", "--artifact-dir", str(scratch / "out"),
        "--no-server-metrics", "--no-gpu-telemetry",
    ]  # fmt: skip
    return command, read


def _benchy(job: Job, home: Path, scratch: Path, book: str) -> tuple[list[str], Any]:
    def read() -> Shot:
        (row,) = json.loads((scratch / "out.json").read_text())["benchmarks"]
        firsts = [value / 1000 for value in row["e2e_ttft"]["values"]]
        return Shot("llama-benchy", list(row["tg_throughput"]["values"]), firsts)

    command = [
        str(home / "llama-benchy/bin/llama-benchy"), "--base-url", f"{job.url}/v1", "--model", job.model,
        "--tokenizer", str(home / "tokenizer"), "--pp", "48", "--tg", str(job.tokens), "--runs", str(job.requests),
        "--latency-mode", "none", "--skip-coherence", "--exact-tg", "--extra-body", "temperature=0",
        "--book-url", book, "--format", "json", "--save-result", str(scratch / "out.json"),
    ]  # fmt: skip
    return command, read


def arm(words: Sequence[str]) -> None:
    """Be redline's arm: ask through its own client, write rates and first tokens."""
    url, model, requests, tokens, offset, out = words
    job = Job(url, model, int(requests), int(tokens), int(offset))

    async def run() -> dict[str, list[float | None]]:
        rates, firsts = [], []
        async with Client(Target(url=url, model=model)) as client:
            for text in asked(job):
                messages = ({"role": "user", "content": text},)
                extra = (("ignore_eos", True),)
                request = ChatRequest(messages=messages, max_tokens=job.tokens, temperature=0.0, seed=1, extra=extra)
                exchange = await client.chat(request)
                assert exchange.error is None, exchange.error
                rates.append(decode_tok_s(exchange))
                firsts.append(ttft_s(exchange))
        return {"rates": rates, "firsts": firsts}

    Path(out).write_text(json.dumps(asyncio.run(run())))


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


def on_the_tier(home: Path, folder: Path, book: str, requests: int, rounds: int) -> tuple[list[str], bool]:
    """Return table rows and whether all agree: tools in turns on the embedded tier, each round in another order."""
    shots: dict[str, list[Shot]] = {tool: [] for tool in TOOLS}
    with embedded(folder) as (url, model):
        for number in range(rounds):
            for tool in TOOLS[number % 3 :] + TOOLS[: number % 3]:
                shots[tool].append(run_tool(tool, Job(url, model, requests, 128, 100 * number), home, folder, book))
                print(f"tier {number} {tool}: {statistics.median(shots[tool][-1].rates):.1f} tok/s", flush=True)
    rows, agree = [], True
    medians = {tool: [statistics.median(shot.rates) for shot in found] for tool, found in shots.items()}
    own = estimate_mean(medians["redline"])
    for tool, found in shots.items():
        level = estimate_mean(medians[tool])
        ratio = estimate_ratio(medians[tool], medians["redline"])
        first = statistics.median(1000 * value for shot in found for value in shot.firsts)
        agree &= (near := abs(level.median / own.median - 1) <= 0.05 and overlap(level, own))
        rows.append(
            f"| {tool} | {rounds} x {requests} | {level.median:.1f} | {words(level, '.1f')} | {ratio.mean:.3f} | "
            f"{words(ratio, '.3f')} | {first:.0f} | {'yes' if near else 'NO'} |"
        )
    return rows, agree


def overlap(one: Estimate, other: Estimate) -> bool:
    """Whether two intervals have a value in common; without an interval, whether nothing speaks against it."""
    bounds = (one.low, one.high, other.low, other.high)
    return None in bounds or (one.low <= other.high and other.low <= one.high)  # type: ignore[operator]


def words(estimate: Estimate, form: str) -> str:
    """Return an interval."""
    return "-" if estimate.low is None else f"{estimate.low:{form}} to {estimate.high:{form}}"


def prepare(home: Path) -> None:
    """Make the tools' environments and a tokenizer file from the model's own header."""
    for name, version in VERSIONS.items():
        folder = home / name
        if not (folder / "bin" / name).exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(folder / "bin/pip"), "install", "-q", f"{name}=={version}"], check=True)
    write_tokenizer(load_settings().models_dir / MODEL_FILE, home / "tokenizer")
    print(f"ready in {home}")


def write_tokenizer(model: Path, folder: Path) -> None:
    """Write the GGUF's byte-level BPE as `tokenizer.json`: both tools want one, and neither may fetch it from a hub."""
    import gguf

    fields = gguf.GGUFReader(str(model)).fields

    def texts(name: str) -> list[str]:
        row = fields[f"tokenizer.ggml.{name}"]
        return [bytes(row.parts[index]).decode() for index in row.data]

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    made = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, level]},
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": {text: at for at, text in enumerate(texts("tokens"))},
            "merges": texts("merges"),
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(made))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


PAGE: Final = """\
# Agreement with other tools

Written by `python benchmarks/agreement.py --write docs/agreement.md` after `--prepare`; tools: {versions}.

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

128 tokens an answer. A round's figure is its median, intervals are over rounds, ratios are to redline round by round.

| tool | rounds x requests | tok/s, median | mean, 95 % | ratio | 95 % | first token ms | within 5 %, overlapping |
|---|---|---|---|---|---|---|---|
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
    parser.add_argument("--arm", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        arm(options.arm)
        return 0
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
