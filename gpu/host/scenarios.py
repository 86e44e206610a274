"""Real commands on a real GPU, one scenario a call: a transcript of what was typed and what came, and exit codes.

    python3 scenarios.py NAME --bundle FOLDER --state FOLDER --logs FOLDER [--gpu 1]

Scenarios: first-light (up, down), end-to-end (serve, prove, measure, drafting on and off, the same by URL, stop),
failures (starts that must fail, side by side, and what `redline diagnose` makes of their logs), replicas (one server on
each of two GPUs), replicas-two (the same by `up --replicas 2`), replicas-killed, replicas-measured, compile-cache (why
compiled code must lie apart by GPU). Each command has its own time; one that fails does not end the scenario.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from pathlib import Path
from typing import Any

TIER, DRAFTING = "vllm/smollm2-135m-single-max", "vllm/smollm2-135m-single-supermax"
MODEL = "smollm2-135m-instruct-bf16"
APPS = ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv")


class Stage:
    """Where a scenario runs: its environment, its transcript, its facts."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.bundle, self.state = Path(options.bundle).absolute(), Path(options.state).absolute()
        self.logs = Path(options.logs).absolute()
        self.logs.mkdir(parents=True, exist_ok=True)
        self.transcript = (self.logs / f"{options.name}.transcript").open("w", buffering=1)
        self.until = time.monotonic() + float(os.environ.get("ROW_SECONDS", "600")) - 15
        home = self.state / "home"
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("VLLM_", "CUDA_VISIBLE", "XDG_"))
        } | {
            "PYTHONPATH": str(self.bundle / "redline"),
            "MODEL_DIR": str(self.bundle / "models"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }

    def redline(self, *words: str, seconds: float = 120) -> int | None:
        """Type a redline command."""
        return self.type([sys.executable, "-m", "redline", *words], "redline", seconds)

    def type(self, argv: list[str], shown: str, seconds: float) -> int | None:
        """Run a command into the transcript; None when it was stopped for its time."""
        words = " ".join([shown, *(_quoted(word) for word in argv[3:])]) if shown == "redline" else shown
        self.transcript.write(f"$ {words}\n")
        seconds = max(5.0, min(seconds, self.until - time.monotonic()))
        began, code = time.monotonic(), None
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self.transcript,
            stderr=subprocess.STDOUT,
            env=self.env,
            cwd=self.state,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        took = time.monotonic() - began
        self.transcript.write(f"[exit {code}, {took:.1f} s]\n\n")
        self.note("step", command=words, exit=code, seconds=round(took, 1))
        return code

    def note(self, kind: str, **values: Any) -> None:
        """Keep a fact for the line of evidence."""
        path = os.environ.get("REDLINE_FACTS")
        if path:
            with open(path, "a") as file:
                file.write(json.dumps({"fact": kind, **values}) + "\n")

    def adopt(self) -> None:
        """Make the unpacked engine known, once."""
        if (self.state / "home/data/redline/engines/vllm-0.33.0.toml").is_file():
            return
        cache = self.state / "cache"
        pairs = {
            "TRITON_CACHE_DIR": cache / "triton",
            "VLLM_CACHE_ROOT": cache / "vllm",
            "TORCHINDUCTOR_CACHE_DIR": cache / "inductor",
            "VLLM_USE_DEEP_GEMM": "0",
            "NCCL_NVLS_ENABLE": "0",
            "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        }
        words = [f"--env={name}={value}" for name, value in pairs.items()]
        self.redline("engine", "add", "--python", sys.executable, "--path", str(self.bundle / "engine"), *words)

    def keep_runs(self) -> None:
        """Pack the records of what ran beside the logs."""
        runs = self.state / "home/state/redline/runs"
        if runs.is_dir():
            with tarfile.open(self.logs / f"{self.options.name}.runs.tgz", "w:gz") as tar:
                tar.add(runs, "runs")

    def keep_logs(self) -> None:
        """Copy the whole log of every server of this state beside the transcript."""
        for log in sorted((self.state / "home/state/redline/servers").glob("*/engine.log")):
            with contextlib.suppress(OSError):
                (self.logs / f"{self.options.name}-{log.parent.name}.engine.log").write_bytes(log.read_bytes())

    def memory(self) -> None:
        """Say what the GPUs hold."""
        argv = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        self.transcript.write(f"$ nvidia-smi (memory used)\n{done.stdout}\n")
        self.note("memory", text=done.stdout.strip().splitlines())


def _quoted(word: str) -> str:
    return f"'{word}'" if any(letter in word for letter in " {}\"'$") else word


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
    stage.note("processes", text=_engine_processes(stage))
    stage.keep_runs()


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
    stage.note("processes", text=_engine_processes(stage))
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
    stage.note("processes", text=_engine_processes(stage))
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
            return answer.status == 200
    except OSError:
        return False


def beside_others(stage: Stage) -> list[str]:
    """Little memory where other work has most of a GPU, else the tier's own."""
    argv = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    busy = any(int(word) > 4000 for word in done.stdout.split() if word.isdigit())
    stage.note("busy", memory_mib=done.stdout.split())
    return ["--set", "GPU_MEMORY_UTILIZATION=0.05"] if busy else []


def stage_gpu(stage: Stage) -> list[str]:
    """Which GPU the tiers take."""
    return ["--gpus", stage.options.gpu]


def engine_args(stage: Stage) -> list[str]:
    """Nothing where the engine's defaults work on this host, else what is known to."""
    mark = stage.state / "defaults-work"
    if mark.is_file() and mark.read_text() == "yes":
        return []
    return ["--set", 'ENGINE_ARGS=--compilation-config \'{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}\'']


def _engine_processes(stage: Stage) -> list[str]:
    done = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=False)
    mine = str(stage.bundle / "engine"), "VLLM::", MODEL
    return [
        line[:200]
        for line in done.stdout.splitlines()
        if any(word in line for word in mine) and "boot.py" not in line and "run.py" not in line
    ]


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
