"""Boot vLLM in this process on weights that are dummies, say what came of it, and time it. One row, one process.

    python3 boot.py ROW_JSON                 boot one row; facts are written to the row's `facts` file as they come
    python3 boot.py --serve                  import vLLM once, then fork for every row whose file is named on stdin

The facts file holds one JSON object a line, so that a boot that dies later has said what it knew. Acceptance is
synthetic where a row says so: vLLM then accepts drafts by a given rate whatever the weights say, and the rate of
decoding shows what a drafter of that acceptance would give on this GPU, not quality.
"""

import json
import os
import random
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROMPT_TOKENS = 512
WORDS = range(1000, 100_000)


class Notes:
    """Facts of a row, appended as they are known."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", buffering=1)  # noqa: SIM115 -- lives as long as the process

    def add(self, kind: str, **values: Any) -> None:
        """Write one fact."""
        self._file.write(json.dumps({"fact": kind, **values}) + "\n")


def run_row(path: str) -> int:
    """Boot one row and measure what it asks for; 0 when all of it was done."""
    row = json.loads(Path(path).read_text())
    notes = Notes(row["facts"])
    try:
        if row["kind"] == "copy":
            notes.add("copy", **copy_rate())
        else:
            boot(row, notes)
    except BaseException as error:
        traceback.print_exc()
        notes.add("error", type=type(error).__name__, text=str(error)[-1500:])
        return 1
    return 0


def boot(row: dict[str, Any], notes: Notes) -> None:
    """Start the engine, then run the row's measurements, each on its own."""
    from vllm import LLM

    began = time.monotonic()
    llm = LLM(**row["args"], worker_extension_cls="worker_probe.WorkerProbe")
    workers = llm.collective_rpc("redline_facts")
    cache = llm.llm_engine.vllm_config.cache_config
    notes.add("boot", seconds=time.monotonic() - began, num_gpu_blocks=cache.num_gpu_blocks, workers=workers)
    notes.add("versions", **versions())
    for item in row.get("measure", ()):
        try:
            MEASURES[item["what"]](llm, item, notes)
        except Exception as error:
            traceback.print_exc()
            notes.add("failed", what=item, type=type(error).__name__, text=str(error)[-600:])


def measure_decode(llm: Any, item: dict[str, Any], notes: Notes) -> None:
    """Decode rate of a batch: tokens after the first over the time since the first, per request and together."""
    if "acceptance" in item:
        rates = conditional_rates(item["acceptance"], item["depth"])
        if not all(llm.collective_rpc("redline_accept", args=(rates,))):
            raise RuntimeError("this engine was not started with synthetic acceptance")
    for repeat in range(item.get("repeats", 2) + 1):
        before = counters(llm)
        outputs = generate(llm, item["batch"], item.get("prompt", PROMPT_TOKENS), item["tokens"])
        drafts = counters(llm).get("drafts", 0) - before.get("drafts", 0)
        accepted = counters(llm).get("accepted", 0) - before.get("accepted", 0)
        if repeat == 0:
            continue  # warms the shapes up
        spans = [out.metrics.last_token_ts - out.metrics.first_token_ts for out in outputs]
        firsts = min(out.metrics.first_token_ts for out in outputs)
        wall = max(out.metrics.last_token_ts for out in outputs) - firsts
        tokens = sum(len(out.outputs[0].token_ids) - 1 for out in outputs)
        steps = drafts / item["batch"] if drafts else tokens / item["batch"]
        notes.add(
            "decode",
            batch=item["batch"],
            prompt=item.get("prompt", PROMPT_TOKENS),
            acceptance=item.get("acceptance"),
            tok_s=tokens / wall,
            request_tok_s=[(item["tokens"] - 1) / span for span in spans],
            wall_s=wall,
            tokens=tokens,
            drafts=drafts,
            accepted=accepted,
            step_ms=1000 * wall / steps,
            seen_acceptance=1 + accepted / drafts if drafts else None,
        )


def measure_prefill(llm: Any, item: dict[str, Any], notes: Notes) -> None:
    """Seconds from scheduling to the first token of one prompt that no cache knows."""
    for repeat in range(item.get("repeats", 2) + item.get("warm", 1)):
        out = generate(llm, 1, item["prompt"], 1)[0]
        seconds = out.metrics.first_token_ts - out.metrics.scheduled_ts
        if repeat >= item.get("warm", 1):
            notes.add("prefill", prompt=item["prompt"], seconds=seconds, tok_s=item["prompt"] / seconds)


MEASURES = {"decode": measure_decode, "prefill": measure_prefill}
_RANDOM = random.Random(20261129)


def generate(llm: Any, batch: int, prompt: int, tokens: int) -> list[Any]:
    """Answer `batch` prompts of random tokens at once."""
    from vllm import SamplingParams

    params = SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False)
    prompts = [{"prompt_token_ids": [_RANDOM.choice(WORDS) for _ in range(prompt)]} for _ in range(batch)]
    return list(llm.generate(prompts, params, use_tqdm=False))


def counters(llm: Any) -> dict[str, int]:
    """Drafts and accepted tokens so far; empty where nothing drafts."""
    names = {"vllm:spec_decode_num_drafts": "drafts", "vllm:spec_decode_num_accepted_tokens": "accepted"}
    return {names[metric.name]: metric.value for metric in llm.get_metrics() if metric.name in names}


def conditional_rates(length: float, depth: int) -> list[float]:
    """Chance of each drafted token given the one before, for a mean accepted length (vLLM's own schedule)."""
    full, part = divmod(length - 1, 1)
    plain = [1.0] * int(full) + [part] + [0.0] * depth
    plain = plain[:depth]
    return [here / before if before > 0 else 0.0 for here, before in zip(plain, [1.0, *plain], strict=False)]


def copy_rate() -> dict[str, float]:
    """Bytes a second of a device-to-device copy, read and written bytes counted, best and median of ten."""
    import torch

    source = torch.randint(-(2**31), 2**31 - 1, (2**30,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(13):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    times = sorted(times[3:])
    moved = 2 * source.numel() * source.element_size()
    return {"best_bytes_s": moved / times[0], "median_bytes_s": moved / times[5], "moved_bytes": moved}


def versions() -> dict[str, Any]:
    """What the numbers were made with."""
    from importlib import metadata

    import torch

    return {
        "vllm": metadata.version("vllm"),
        "torch": torch.__version__,
        "triton": metadata.version("triton"),
        "transformers": metadata.version("transformers"),
        "cuda": torch.version.cuda,
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_initialized() else None,
        "flashinfer": _has("flashinfer"),
    }


def _has(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def serve() -> None:
    """Import once, fork for every row. CUDA must not have been touched before a fork."""
    import torch
    from vllm import LLM, SamplingParams  # noqa: F401 -- the import is what is saved

    print("READY" if not torch.cuda.is_initialized() else "TOUCHED", flush=True)
    for line in sys.stdin:
        path = line.strip()
        if not path:
            continue
        pid = os.fork()
        if pid == 0:
            os._exit(_forked(path))
        print(f"PID {pid}", flush=True)
        _, status = os.waitpid(pid, 0)
        print(f"DONE {os.waitstatus_to_exitcode(status)}", flush=True)


def _forked(path: str) -> int:
    os.setsid()
    row = json.loads(Path(path).read_text())
    log = os.open(row["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = run_row(path)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        code = run_row(sys.argv[1])
        sys.stdout.flush()
        os._exit(code)  # an engine's own shutdown may hang; the row is written
