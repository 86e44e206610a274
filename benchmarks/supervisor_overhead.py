"""What a supervisor costs: its share of a core and its memory, at rest and under a stream of log lines; and `ps` CPU.

python benchmarks/supervisor_overhead.py [--servers 8] [--seconds 30] [--lines-per-s 100] [--ps-runs 9]

The engines are small programs that answer as an OpenAI-compatible server does. Budgets: 1 % of one core, 60 MB,
300 ms of CPU for `ps` with 8 servers.
"""

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

from redline.engine.launch_plan import LaunchPlan, Readiness, StopPolicy
from redline.launch.server import follow, register, start
from redline.launch.state import ServerRecord, read_record
from redline.launch.stop import stop
from redline.rig.processes import read_process

ENGINE = """
import http.server, json, sys, threading, time
class H(http.server.BaseHTTPRequestHandler):
    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.reply({"data": [{"id": "m"}]})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.reply({"choices": [{}]})
    def log_message(self, *_): pass
port, rate = int(sys.argv[1]), float(sys.argv[2])
server = http.server.HTTPServer(("127.0.0.1", port), H)
def chat():
    while rate:
        print("INFO 11-29 10:00:00 loggers.py:257 Avg prompt throughput: 120.1 tokens/s, running: 1 reqs", flush=True)
        time.sleep(1 / rate)
threading.Thread(target=chat, daemon=True).start()
server.serve_forever()
"""


def boot(servers: Path, rate: float) -> tuple[Path, ServerRecord]:
    """Start one engine and return its folder and record once it is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    plan = LaunchPlan(
        slug=f"bench/{port}",
        engine="llamacpp",
        engine_version="0",
        form="native",
        argv=(sys.executable, "-c", ENGINE, str(port), str(rate)),
        host="127.0.0.1",
        port=port,
        served_model="m",
        readiness=Readiness(model="m", timeout_s=60),
        stop=StopPolicy(grace_s=1),
    )
    folder, _ = register(servers, plan)
    start(folder, dict(os.environ))
    for _ in follow(folder):
        pass
    record = read_record(folder)
    if record is None or record.supervisor is None:
        raise SystemExit(f"{folder} did not start")
    return folder, record


def cpu_s(record: ServerRecord) -> float:
    """Return the processor seconds of a supervisor so far."""
    assert record.supervisor is not None
    row = read_process(record.supervisor.pid)
    assert row is not None
    return row.cpu_ticks / os.sysconf("SC_CLK_TCK")


def peak_mb(record: ServerRecord) -> float:
    """Return the most memory a supervisor ever held."""
    assert record.supervisor is not None
    for line in Path(f"/proc/{record.supervisor.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


def ps_cpu_ms(state_home: Path) -> float:
    """Run `redline ps` once and return its user and system milliseconds."""
    null = os.open(os.devnull, os.O_WRONLY)
    environ = {**os.environ, "XDG_STATE_HOME": str(state_home)}
    actions = [(os.POSIX_SPAWN_DUP2, null, 1)]
    pid = os.posix_spawn(sys.executable, [sys.executable, "-m", "redline", "ps"], environ, file_actions=actions)
    os.close(null)
    _, _, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1000


def report(words: str, running: list[tuple[Path, ServerRecord]], seconds: float) -> None:
    """Measure supervisors over a span and print a line."""
    booted = [cpu_s(record) for _, record in running]
    began = time.monotonic()
    time.sleep(seconds)
    span = time.monotonic() - began
    shares = [(cpu_s(record) - before) / span for (_, record), before in zip(running, booted, strict=True)]
    peaks = [peak_mb(record) for _, record in running]
    print(
        f"{words:<28} {statistics.median(shares):7.3%} of a core (max {max(shares):.3%})   "
        f"{statistics.median(peaks):5.1f} MB at most (max {max(peaks):.1f})   "
        f"boot {statistics.median(booted):.2f} s CPU   n={len(running)}, {span:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--lines-per-s", type=float, default=100)
    parser.add_argument("--ps-runs", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers = Path(folder) / "redline" / "servers"
        servers.mkdir(parents=True)
        running = [boot(servers, 0.0) for _ in range(options.servers)]
        try:
            report("at rest", running, options.seconds)
            taken = [ps_cpu_ms(Path(folder)) for _ in range(options.ps_runs)]
            words = f"redline ps, {options.servers} servers"
            print(f"{words:<28} {statistics.median(taken):5.0f} ms CPU (max {max(taken):.0f})")
            running.append(boot(servers, options.lines_per_s))
            report(f"{options.lines_per_s:.0f} log lines a second", running[-1:], options.seconds)
        finally:
            for place, record in running:
                stop(place, record, now=True)


if __name__ == "__main__":
    main()
