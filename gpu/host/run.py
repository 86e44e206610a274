"""Run a plan of experiments within a time, keep every result as it comes, and go on where it stopped.

    python3 run.py PLAN.yaml --state FOLDER --out FOLDER --seconds N [--lanes gpu0,side,both] [--done FILE]...

One line of JSON a row goes to FOLDER/evidence.jsonl, logs to FOLDER/logs.tgz. A row whose line is there already, or in
a --done file, is skipped. Rows of one lane run in turn, lanes side by side; `both` comes when the others are through.
A row that crashes or runs out of time is a line with its error. Kernel caches stay in the state folder.

Needs Python 3.12 with PyYAML; vLLM is found in --engine. Environment of the rows: see `row_environment`.
"""

import argparse
import contextlib
import datetime as dt
import json
import os
import re
import select
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from rows import engine_arguments, read_plan
from shapes import write_checkpoints

GPUS = {"gpu0": "0", "real": "1", "side": "1", "both": "0,1"}
RESERVE_S = 6
LOG_PATTERNS = {
    "available_gib": r"Available KV cache memory: (-?[\d.]+) GiB",
    "pool_tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "block_tokens": r"attention block size to (\d+) tokens",
    "model_gib": r"Model loading took ([\d.]+) GiB",
    "usage": r"Actual usage is ([\d.]+) GiB for consumed memory \(weights \+ non-torch\), ([\d.]+) GiB "
    r"for peak activation, and ([\d.]+) GiB for CUDAGraph",
    "graph_capture": r"Graph capturing finished in ([\d.]+) secs, took (-?[\d.]+) GiB",
    "attention": r"Using (?:AttentionBackendEnum\.)?(\w+) attention backend",
    "prefill": r"GDN prefill (?:backend|kernel)\W*(?:is |=|: ?)?['\"]?(\w+)",
}


class Session:
    """What all lanes share: folders, the deadline, what is done, and the one file of results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.deadline = time.monotonic() + options.seconds
        self.plan = read_plan(Path(options.plan))
        self.state = Path(options.state)
        self.out = Path(options.out)
        self.logs = self.state / "logs"
        self.checkpoints = self.state / "checkpoints"
        for folder in (self.logs, self.out, self.state / "cache", self.state / "rows"):
            folder.mkdir(parents=True, exist_ok=True)
        write_checkpoints(self.checkpoints)
        self.results = self.state / "evidence.jsonl"
        self.predictions = read_lines(Path(options.predictions)) if options.predictions else {}
        self.done = {name for path in (*options.done, self.results) for name in read_lines(Path(path))}
        self.lock = threading.Lock()
        self.driver = driver()

    def left(self) -> float:
        """Seconds until this run must be over."""
        return self.deadline - time.monotonic() - RESERVE_S

    def keep(self, line: dict[str, Any]) -> None:
        """Append a result, and bring everything that would be lost into the folder that comes back."""
        with self.lock:
            with self.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            (self.out / "evidence.jsonl").write_bytes(self.results.read_bytes())
            with tarfile.open(self.out / "logs.tgz", "w:gz") as tar:
                tar.add(self.logs, "logs")
        shown = {key: line[key] for key in ("row", "seconds", "error", "short") if line.get(key) is not None}
        print(json.dumps(shown)[:600], flush=True)


def read_lines(path: Path) -> dict[str, dict[str, Any]]:
    """Return the objects of a JSONL file by their `row`; none where there is no file."""
    if not path.is_file():
        return {}
    lines = [json.loads(text) for text in path.read_text().splitlines() if text.strip()]
    return {line["row"]: line for line in lines}


def driver() -> dict[str, Any]:
    """Driver and GPUs, as the driver's own tool says."""
    argv = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return {"gpus": []}
    fields = [[part.strip() for part in line.split(",")] for line in done.stdout.splitlines() if line.strip()]
    return {"gpus": [item[0] for item in fields], "driver": fields[0][1] if fields else None}


def row_environment(session: Session, lane: str) -> dict[str, str]:
    """What every row runs with."""
    cache = session.state / "cache"
    return {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": GPUS[lane],
        "PYTHONPATH": os.pathsep.join([session.options.engine, str(HERE)]),
        "PYTHONUNBUFFERED": "1",
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TRITON_CACHE_AUTOTUNING": "1",
        "VLLM_CACHE_ROOT": str(cache / "vllm"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_USE_DEEP_GEMM": "0",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "NCCL_NVLS_ENABLE": "0",
        "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        "NVSHMEM_DISABLE_NVLS": "1",
        "OMP_NUM_THREADS": "4",
    }


class Nursery:
    """A process that has imported vLLM and forks for each row: saves the import, a quarter of a boot."""

    def __init__(self, session: Session, lane: str) -> None:
        self._log = (session.logs / f"nursery-{lane}.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "boot.py"), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=row_environment(session, lane),
            start_new_session=True,
        )
        self.usable = self._line(120) == "READY"

    def run(self, path: Path, timeout: float) -> int | None:
        """Fork for a row and return its exit code; None when it was stopped for its time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n".encode())
        self._process.stdin.flush()
        pid = int((self._line(20) or "PID 0").split()[1])
        answer = self._line(timeout)
        if answer is None:
            if pid:
                kill_group(pid)
            self._line(20)
            return None
        return int(answer.split()[1])

    def close(self) -> None:
        """End it."""
        kill_group(self._process.pid)
        self._process.wait()
        self._log.close()

    def _line(self, timeout: float) -> str | None:
        """One line of its output, unbuffered, or None when it did not come in time or the process is gone."""
        assert self._process.stdout is not None
        descriptor, text, until = self._process.stdout.fileno(), b"", time.monotonic() + timeout
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            byte = os.read(descriptor, 1) if ready else b""
            if not byte:
                return None
            text += byte
            # Something that prints at import must not be taken for an answer.
            if text.endswith(b"\n") and not text.startswith((b"READY", b"TOUCHED", b"PID ", b"DONE ")):
                text = b""
        return text.decode().strip()


def wait_for_memory(gpus: str, seconds: float = 10) -> None:
    """Wait until the GPUs are empty: memory that comes free while an engine measures itself makes it fail."""
    argv = ["nvidia-smi", f"--id={gpus}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.SubprocessError):
            return
        if all(int(word) < 2000 for word in done.stdout.split() if word.isdigit()):
            return
        time.sleep(0.3)


def kill_group(pid: int) -> None:
    """End a process group that this program started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def run_lanes(session: Session, lanes: str) -> None:
    """Run lanes that share a GPU one after the other, each when its gate is open."""
    gates = dict(text.split("=", 1) for text in session.options.gate)
    for lane in lanes.split("+"):
        while lane in gates and not Path(gates[lane]).exists() and session.left() > 0:
            time.sleep(1)
        run_lane(session, lane)


def run_lane(session: Session, lane: str) -> None:
    """Run a lane's rows in turn."""
    rows = [row for row in session.plan["rows"] if row["lane"] == lane and row["id"] not in session.done]
    if session.options.rows:
        rows = [row for row in rows if row["id"] in session.options.rows]
    nursery: Nursery | None = None
    try:
        for row in rows:
            if session.left() < row["est_s"]:
                print(json.dumps({"row": row["id"], "left_for_later": round(session.left())}), flush=True)
                continue
            forked = row["kind"] == "boot" and row["asked"]["tp"] == 1 and not session.options.no_fork
            if forked and nursery is None:
                nursery = Nursery(session, lane)
            one_row(session, lane, row, nursery if forked and nursery and nursery.usable else None)
    except Exception as error:
        print(json.dumps({"lane": lane, "fault": repr(error)}), flush=True)
    finally:
        if nursery is not None:
            nursery.close()


def one_row(session: Session, lane: str, row: dict[str, Any], nursery: Nursery | None) -> None:
    """Run one row and keep its line, whatever happens to it."""
    if lane != "side" and row["kind"] != "program":
        wait_for_memory(GPUS[lane])
    began = time.monotonic()
    timeout = min(row["timeout_s"], session.left())
    files = write_row(session, row)
    code: int | None
    if nursery is not None:
        code = nursery.run(files["row"], timeout)
        if code and _fork_was_at_fault(files["log"]):
            nursery.usable = False
            files["facts"].unlink(missing_ok=True)
            code = run_plain(session, lane, row, files, min(row["timeout_s"], session.left()))
    else:
        code = run_plain(session, lane, row, files, timeout)
    if code is None and timeout < row["timeout_s"]:
        # The run's own time is over, not the row's: a later run has it.
        print(json.dumps({"row": row["id"], "cut_off": round(time.monotonic() - began)}), flush=True)
        return
    facts = [json.loads(text) for text in files["facts"].read_text().splitlines()] if files["facts"].is_file() else []
    session.keep(line_of(session, row, code, facts, files["log"], time.monotonic() - began))


def write_row(session: Session, row: dict[str, Any]) -> dict[str, Path]:
    """Write what the row's process reads; return its files."""
    log, facts = session.logs / f"{row['id']}.log", session.state / "rows" / f"{row['id']}.facts"
    facts.unlink(missing_ok=True)
    log.unlink(missing_ok=True)
    path = session.state / "rows" / f"{row['id']}.json"
    full = {**row, "log": str(log), "facts": str(facts)}
    if row["kind"] == "boot":
        full["args"] = engine_arguments(row["asked"], session.checkpoints)
    path.write_text(json.dumps(full))
    return {"row": path, "log": log, "facts": facts}


def run_plain(session: Session, lane: str, row: dict[str, Any], files: dict[str, Path], timeout: float) -> int | None:
    """Run a row in a process of its own; None when it was stopped for its time."""
    argv = [sys.executable, str(HERE / "boot.py"), str(files["row"])]
    environment = row_environment(session, lane)
    if row["kind"] == "program":
        places = {
            "here": HERE,
            "state": session.state,
            "logs": session.logs,
            "bundle": Path(session.options.engine).parent,
        }
        argv = [word.format(**places) for word in row["argv"]]
        environment |= {"REDLINE_FACTS": str(files["facts"]), "ROW_SECONDS": str(int(timeout))}
        environment.update({key: str(value) for key, value in row.get("environment", {}).items()})
    with files["log"].open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10 if row["kind"] == "program" else 1)
            return None
        finally:
            kill_group(process.pid)
            process.wait()


def _fork_was_at_fault(log: Path) -> bool:
    text = log.read_text(errors="replace") if log.is_file() else ""
    return "re-initialize CUDA in forked" in text or "CUDA error: initialization error" in text


def line_of(
    session: Session, row: dict[str, Any], code: int | None, facts: list[dict[str, Any]], log: Path, seconds: float
) -> dict[str, Any]:
    """Return a row's line of evidence."""
    text = log.read_text(errors="replace") if log.is_file() else ""
    boot = next((fact for fact in facts if fact["fact"] == "boot"), None)
    error = next((fact for fact in facts if fact["fact"] == "error"), None)
    predicted = session.predictions.get(row["id"])
    line = {
        "row": row["id"],
        "plan": session.plan["name"],
        "kind": row["kind"],
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "rig": session.driver,
        "lane": row["lane"],
        "asked": row.get("asked"),
        "predicted": {key: value for key, value in predicted.items() if key != "row"} if predicted else None,
        "facts": facts,
        "log": {name: found for name, pattern in LOG_PATTERNS.items() if (found := _last(pattern, text))},
        "exit": code,
        "seconds": round(seconds, 1),
        "error": None,
    }
    if code is None:
        line["error"] = {"type": "timeout", "text": "\n".join(text.splitlines()[-4:])[-800:]}
    elif error is not None:
        line["error"] = {"type": error["type"], "text": error["text"]}
    elif code != 0:
        line["error"] = {"type": f"exit {code}", "text": "\n".join(text.splitlines()[-12:])[-1500:]}
    if boot is not None:
        line["short"] = shorten(boot, predicted, facts)
    return line


def shorten(boot: dict[str, Any], predicted: dict[str, Any] | None, facts: list[dict[str, Any]]) -> dict[str, Any]:
    """What a reader wants to see while the plan runs."""
    least = min((worker["available_bytes"] or 0 for worker in boot["workers"]), default=0)
    short: dict[str, Any] = {"blocks": boot["num_gpu_blocks"], "available_gib": round(least / 2**30, 3)}
    if predicted and predicted.get("pool_block_bytes"):
        short["by_rule"] = least // predicted["pool_block_bytes"]
        short["planned"] = predicted["pool_blocks"]
    rates = [(fact["batch"], round(fact["tok_s"], 1), round(fact["step_ms"], 2)) for fact in facts if "step_ms" in fact]
    if rates:
        short["decode"] = rates
    return short


def _last(pattern: str, text: str) -> Any:
    found = re.findall(pattern, text)
    return found[-1] if found else None


def main() -> None:
    """Run the lanes that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan")
    parser.add_argument("--state", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--engine", required=True, help="folder that holds vLLM")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--predictions")
    parser.add_argument("--done", action="append", default=[])
    parser.add_argument("--lanes", default="gpu0", help="side by side with `,`, one after the other with `+`")
    parser.add_argument("--gate", action="append", default=[], help="LANE=FILE: the lane waits until the file is there")
    parser.add_argument("--rows", type=lambda text: set(text.split(",")), default=set())
    parser.add_argument("--no-fork", action="store_true")
    session = Session(parser.parse_args())
    lanes = session.options.lanes.split(",")
    threads = [threading.Thread(target=run_lanes, args=(session, lane)) for lane in lanes if lane != "both"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if "both" in lanes:
        run_lane(session, "both")


if __name__ == "__main__":
    main()
