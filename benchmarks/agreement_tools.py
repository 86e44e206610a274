"""The tools that `agreement.py` takes turns with, and redline as one of them: what each is told, and how it is read."""

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import ChatRequest
from redline.probe.target import Target
from redline.settings import load_settings
from redline.workload.prompts import PromptClass, prompts

VERSIONS: Final = {"aiperf": "0.13.0", "llama-benchy": "0.4.0"}
TOOLS: Final = ("redline", "aiperf", "llama-benchy")
MODEL_FILE: Final = "smollm2-135m-instruct-q4_0/SmolLM2-135M-Instruct.Q4_0.gguf"


@dataclass(slots=True)
class Shot:
    """One invocation of a tool: rates in tok/s and first tokens in seconds by request, processor seconds in all."""

    tool: str
    rates: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    unread: int = 0
    cpu_s: float = 0.0
    tokens: int = 0

    @property
    def rate(self) -> float:
        """Tokens over the time they took, all requests together: of equal lengths, the harmonic mean."""
        return statistics.harmonic_mean(self.rates)


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

    return [sys.executable, __file__, *words], read


def _aiperf(job: Job, home: Path, scratch: Path, _book: str) -> tuple[list[str], Any]:
    lines = "".join(json.dumps({"text": text}) + "\n" for text in asked(job))
    (scratch / "prompts.jsonl").write_text(lines)
    extra = {"max_tokens": job.tokens, "temperature": 0, "ignore_eos": True, "seed": 1}

    def read() -> Shot:
        found = [json.loads(line)["metrics"] for line in next(scratch.rglob("profile_export.jsonl")).open()]
        # aiperf now and then writes a request without its latency; it is counted, and no number is made of it.
        rows = [row for row in found if "request_latency" in row]
        spans = [(row["request_latency"]["value"] - row["time_to_first_token"]["value"]) / 1000 for row in rows]
        made = [row["output_sequence_length"]["value"] for row in rows]
        firsts = [row["time_to_first_token"]["value"] / 1000 for row in rows]
        rates = [(n - 1) / span for n, span in zip(made, spans, strict=True)]
        return Shot("aiperf", rates, firsts, unread=len(found) - len(rows))

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


if __name__ == "__main__":
    arm(sys.argv[1:])
