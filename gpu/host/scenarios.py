"""Real commands on a real GPU, one scenario a call: a transcript of what was typed and what came, and exit codes.

    python3 scenarios.py NAME --bundle FOLDER --state FOLDER --logs FOLDER [--gpu 1]

Scenarios: first-light (up, down), end-to-end (serve, prove, measure, drafting on and off, the same by URL, stop),
failures (starts that must fail, side by side, and what `redline diagnose` makes of their logs), replicas (one server on
each of two GPUs), replicas-two (the same by `up --replicas 2`), replicas-killed, replicas-measured, compile-cache (why
compiled code must lie apart by GPU). Each command has its own time; one that fails does not end the scenario.
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

from several import compile_cache, replicas, replicas_killed, replicas_measured, replicas_two
from stage import DRAFTING, MODEL, TIER, Stage, engine_args, engine_processes, stage_gpu


def first_light(stage: Stage) -> None:
    """One start with the engine's own defaults, and one with what is known to work if that failed."""
    stage.adopt()
    stage.redline("doctor", seconds=60)
    stage.redline("get", TIER, seconds=120)
    small = ["--set", "GPU_MEMORY_UTILIZATION=0.05"]  # other work has most of that GPU
    code = stage.redline("up", TIER, *stage_gpu(stage), *small, "--no-measure", seconds=200)
    stage.note("defaults", works=code == 0)
    (stage.state / "defaults-work").write_text("yes" if code == 0 else "no")
    stage.redline("logs", seconds=20)
    stage.redline("down", "--all", seconds=60)
    stage.memory()


def end_to_end(stage: Stage) -> None:
    """Serve, prove, measure, drafting off and on, the same by URL, report, stop."""
    stage.adopt()
    gpu, args = stage_gpu(stage), engine_args(stage)
    stage.redline("up", TIER, *gpu, *args, seconds=170)
    stage.redline("ps", seconds=20)
    stage.redline("verify", "--suite", "full", seconds=90)
    stage.redline("verify", "--suite", "stress", seconds=150)
    stage.redline("bench", "--quick", seconds=75)
    url = "http://127.0.0.1:8130"
    stage.redline("verify", "--url", url, "--suite", "full", seconds=90)
    stage.redline("bench", "--quick", "--url", url, seconds=75)
    stage.redline("report", "last", seconds=30)
    stage.redline("up", DRAFTING, *gpu, *args, seconds=170)
    stage.redline("verify", "--suite", "full", seconds=90)
    stage.redline("bench", "--quick", seconds=75)
    stage.redline("compare", TIER, DRAFTING, seconds=30)
    stage.redline("down", "--all", seconds=60)
    stage.redline("ps", seconds=20)
    stage.redline("runs", seconds=20)
    stage.memory()
    stage.note("processes", text=engine_processes(stage))
    stage.keep_runs()


FAILURES: dict[str, list[str]] = {
    "utilization-too-high": ["--gpu-memory-utilization", "0.999"],
    "context-too-long": ["--max-model-len", "16384"],
    "context-beyond-pool": ["--kv-cache-memory-bytes", "10M"],
    "drafter-of-another-model": ["--speculative-config", '{"method":"mtp","num_speculative_tokens":3}'],
    "drafter-depth-zero": ["--speculative-config", '{"method":"ngram","num_speculative_tokens":0}'],
    "heads-not-divisible": ["--tensor-parallel-size", "2"],
    "backend-missing": ["--attention-backend", "FLASHINFER"],
    "port-taken": [],
    "model-missing": [],
}


def failures(stage: Stage) -> None:
    """Start vLLM wrongly in several ways at once, keep the logs, and ask redline what went wrong."""
    stage.adopt()
    stage.redline("get", TIER, seconds=120)
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    holder.bind(("127.0.0.1", 8149))
    holder.listen(1)
    base = stage.bundle / "models" / MODEL
    env = {
        **stage.env,
        "PYTHONPATH": str(stage.bundle / "engine"),
        "CUDA_VISIBLE_DEVICES": stage.options.gpu,
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_CACHE_ROOT": str(stage.state / "cache/vllm"),
        "TRITON_CACHE_DIR": str(stage.state / "cache/triton"),
    }
    common = ["--max-num-seqs", "2", "--enforce-eager"]
    started: dict[str, subprocess.Popen[bytes]] = {}
    for number, (name, words) in enumerate(FAILURES.items()):
        model = str(base) if name != "model-missing" else str(base.parent / "not-there")
        usual = [] if "--gpu-memory-utilization" in words else ["--gpu-memory-utilization", "0.05"]
        port = "8149" if name == "port-taken" else str(8150 + number)
        argv = [
            *(sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", model, *common, *usual, *words),
            *("--host", "127.0.0.1", "--port", port),
        ]
        with (stage.logs / f"failure-{name}.log").open("wb") as log:
            started[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
            )
    end = min(stage.until - 40, time.monotonic() + 150)
    for name, process in started.items():
        try:
            code: int | None = process.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = None
        stage.note("failure", name=name, exit=code)
    for process in started.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    holder.close()
    for name in FAILURES:
        stage.redline("diagnose", str(stage.logs / f"failure-{name}.log"), seconds=20)


SCENARIOS = {
    "first-light": first_light,
    "end-to-end": end_to_end,
    "failures": failures,
    "replicas": replicas,
    "replicas-two": replicas_two,
    "replicas-killed": replicas_killed,
    "replicas-measured": replicas_measured,
    "compile-cache": compile_cache,
}


def main() -> None:
    """Run one scenario."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(SCENARIOS))
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--logs", required=True)
    parser.add_argument("--gpu", default="1")
    stage = Stage(parser.parse_args())
    try:
        SCENARIOS[stage.options.name](stage)
    finally:
        stage.transcript.close()
        print((stage.logs / f"{stage.options.name}.transcript").read_text()[-4000:])


if __name__ == "__main__":
    main()
