"""Where a scenario runs: its environment, its transcript, its facts. Knows redline's commands as words to type."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
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


def stage_gpu(stage: Stage) -> list[str]:
    """Which GPU the tiers take."""
    return ["--gpus", stage.options.gpu]


def engine_args(stage: Stage) -> list[str]:
    """Nothing where the engine's defaults work on this host, else what is known to."""
    mark = stage.state / "defaults-work"
    if mark.is_file() and mark.read_text() == "yes":
        return []
    return ["--set", 'ENGINE_ARGS=--compilation-config \'{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}\'']


def engine_processes(stage: Stage) -> list[str]:
    """Return what is left of engines, as `ps` shows it."""
    done = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=False)
    mine = str(stage.bundle / "engine"), "VLLM::", MODEL
    return [
        line[:200]
        for line in done.stdout.splitlines()
        if any(word in line for word in mine) and "boot.py" not in line and "run.py" not in line
    ]
