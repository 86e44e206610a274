"""Scenarios of several servers: two copies on two GPUs, a copy killed, and whose compiled code runs where."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from stage import APPS, MODEL, TIER, Stage, engine_args, engine_processes


def replicas(stage: Stage) -> None:
    """One server on each GPU, side by side."""
    stage.adopt()
    args = engine_args(stage)
    stage.redline("up", TIER, "--gpus", "0", *args, "--no-measure", seconds=120)
    stage.redline("up", TIER, "--gpus", "1", "--port", "8131", "--beside", *args, "--no-measure", seconds=120)
    stage.redline("ps", seconds=20)
    stage.redline("verify", "--url", "http://127.0.0.1:8130", seconds=60)
    stage.redline("verify", "--url", "http://127.0.0.1:8131", seconds=60)
    stage.redline("down", "--all", seconds=60)
    stage.redline("ps", seconds=20)
    stage.memory()


def replicas_two(stage: Stage) -> None:
    """Two copies behind the router, one each GPU; should that fail, what else makes two servers, and every log."""
    stage.adopt()
    stage.redline("get", TIER, seconds=120)
    up = ("up", TIER, "--replicas", "2", *beside_others(stage), "--no-measure")
    # What another process takes or gives back while vLLM measures the GPU is counted as its own: then a given cache.
    given = "--kv-cache-memory-bytes 2G"
    for more in ((), ("--set", f"ENGINE_ARGS={given}"), ("--set", f"ENGINE_ARGS={given} --enforce-eager")):
        if stage.redline(*up, *more, seconds=200) == 0:
            break
        stage.keep_logs()
        stage.redline("down", "--all", seconds=60)
    else:
        for gpu, port in (("0", "8130"), ("1", "8131")):
            place = ("--gpus", gpu, "--port", port, "--beside", *beside_others(stage), "--no-measure")
            stage.redline("up", TIER, *place, seconds=120)
    stage.redline("ps", seconds=20)
    stage.type(["nvidia-smi", *APPS], "nvidia-smi " + " ".join(APPS), 20)
    for port in ("8130", "8131", "8132"):
        stage.redline("verify", "--url", f"http://127.0.0.1:{port}", "--suite", "full", seconds=90)
    stage.redline("ask", "What is the capital of France?", seconds=30)
    stage.redline("down", "--all", seconds=90)
    stage.redline("ps", seconds=20)
    stage.memory()
    stage.note("processes", text=engine_processes(stage))
    stage.keep_logs()


def replicas_killed(stage: Stage) -> None:
    """A copy is killed: the other answers through the router, and the same `up` brings the first one back."""
    stage.adopt()
    up = ("up", TIER, "--replicas", "2", *beside_others(stage), "--no-measure")
    stage.redline(*up, seconds=120)
    done = subprocess.run(
        [sys.executable, "-m", "redline", "ps", "--json"], env=stage.env, capture_output=True, text=True, check=False
    )
    stage.note("ps", text=done.stdout[:4000])
    with contextlib.suppress(ValueError, KeyError, TypeError, StopIteration):
        copy = next(row for row in json.loads(done.stdout) if row["role"] == "copy 1")
        stage.type(["kill", "-9", str(copy["pid"])], f"kill -9 {copy['pid']}   # copy 1", 10)
    time.sleep(3)
    stage.redline("ps", seconds=20)
    for _ in range(3):
        stage.redline("ask", "What is the capital of France?", seconds=30)
    stage.redline(*up, seconds=150)
    stage.redline("ps", seconds=20)
    stage.redline("down", "--all", seconds=90)
    stage.memory()
    stage.note("processes", text=engine_processes(stage))
    stage.keep_logs()


def replicas_measured(stage: Stage) -> None:
    """Two copies alone on their GPUs, with the tier's own memory, measured through the router."""
    stage.adopt()
    stage.redline("up", TIER, "--replicas", "2", seconds=150)
    stage.redline("ps", seconds=20)
    stage.redline("down", "--all", seconds=60)
    stage.memory()
    stage.keep_logs()


def compile_cache(stage: Stage) -> None:
    """Why a server can end on code compiled for another GPU: the same model on two GPUs, cache shared and apart."""
    stage.redline("get", TIER, seconds=120)
    uuids = subprocess.run(
        ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=False
    ).stdout.split()
    second = uuids[1] if len(uuids) > 1 else "1"
    by_flag, eager = ["--device-ids", "0"], ["--device-ids", "0", "--enforce-eager"]
    # What is compiled first for cuda:1; then side by side what takes it up; then cuda:0's code on the second GPU.
    serve_all(stage, {"shared-gpu1-first": ("shared", ["--device-ids", "1"], {})})
    serve_all(
        stage,
        {
            "shared-gpu0-after-gpu1": ("shared", by_flag, {}),
            "apart-gpu0": ("apart", by_flag, {}),
            "shared-gpu0-eager": ("shared", eager, {}),
            "shared-gpu1-again": ("shared", ["--device-ids", "1"], {}),
        },
    )
    serve_all(
        stage,
        {
            "apart-gpu0s-code-on-gpu1-by-variable": ("apart", [], {"CUDA_VISIBLE_DEVICES": "1"}),
            "apart-gpu0s-code-on-gpu1-by-uuid": ("apart", [], {"CUDA_VISIBLE_DEVICES": second}),
            "apart-gpu0s-code-on-gpu1-by-flag": ("apart", ["--device-ids", "1"], {}),
        },
    )


def serve_all(stage: Stage, asked: dict[str, tuple[str, list[str], dict[str, str]]]) -> None:
    """Start vLLM servers side by side, each with its cache folder, words and variables; note which of them answer."""
    model = str(stage.bundle / "models" / MODEL)
    started: dict[str, tuple[int, subprocess.Popen[bytes]]] = {}
    for number, (name, (cache, words, variables)) in enumerate(asked.items()):
        env = {
            **stage.env,
            "PYTHONPATH": str(stage.bundle / "engine"),
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            "VLLM_USE_FLASHINFER_SAMPLER": "0",
            "VLLM_USE_DEEP_GEMM": "0",
            "VLLM_CACHE_ROOT": str(stage.state / "cache" / f"proof-{cache}"),
            "TRITON_CACHE_DIR": str(stage.state / "cache/triton"),
            **variables,
        }
        argv = [
            *(sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", model, "--max-num-seqs", "2"),
            *("--gpu-memory-utilization", "0.04", "--kv-cache-memory-bytes", "512M", "--max-model-len", "4096"),
            *("--host", "127.0.0.1", "--port", str(8170 + number), *words),
        ]
        with (stage.logs / f"compile-cache-{name}.log").open("wb") as log:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
            )
        started[name] = 8170 + number, process
    end = min(stage.until, time.monotonic() + 110)
    for name, (port, process) in started.items():
        while (answers := _is_well(port)) is False and process.poll() is None and time.monotonic() < end:
            time.sleep(0.5)
        text = (stage.logs / f"compile-cache-{name}.log").read_text(errors="replace")
        fault = "CUDA driver error: invalid argument" in text
        cache, words, variables = asked[name]
        stage.note("serve", name=name, answers=answers, exit=process.poll(), invalid_argument=fault)
        shown = " ".join([*(f"{key}={value}" for key, value in variables.items()), *words])
        stage.transcript.write(
            f"cache {cache}   {shown}   -> {'answers' if answers else f'exit {process.poll()}'}"
            f"{'   CUDA driver error: invalid argument' if fault else ''}\n"
        )
    for _, process in started.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    for _, process in started.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(8)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_well(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def beside_others(stage: Stage) -> list[str]:
    """Little memory where other work has most of a GPU, else the tier's own."""
    argv = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    busy = any(int(word) > 4000 for word in done.stdout.split() if word.isdigit())
    stage.note("busy", memory_mib=done.stdout.split())
    return ["--set", "GPU_MEMORY_UTILIZATION=0.05"] if busy else []
