"""What `redline up` adds to an engine's own boot: seconds until the first token, with redline and without, in turn.

    python benchmarks/up_overhead.py [--slug llamacpp/smollm2-135m-cpu-fast] [--pairs 7] [--port 8160]

Each pair boots the same engine with the same arguments and environment twice: by `redline up`, and by hand, from the
plan that `up` left. The order alternates. Both clocks run from the start of the process until the server has answered
one chat of one token. Budget: 1.5 s. The model must be on disk (`redline get`).
"""

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIMIT_S = 300.0
POLL_S = 0.02


def first_token_s(port: int, model: str, began: float) -> float:
    """Return seconds from `began` until the server has made one token."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1})
    while time.monotonic() - began < LIMIT_S:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            if connection.getresponse().status == 200:
                return time.monotonic() - began
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(POLL_S)
    sys.exit(f"no token within {LIMIT_S:.0f} s")


def by_redline(environ: dict[str, str], slug: str, port: int, model: str) -> tuple[float, dict[str, Any]]:
    """Boot with `redline up` and stop again; return the seconds and the plan."""
    argv = [sys.executable, "-m", "redline"]
    began = time.monotonic()
    up = subprocess.Popen(
        [*argv, "up", slug, "--port", str(port), "--no-measure", "--json"], env=environ, stdout=subprocess.DEVNULL
    )
    seconds = first_token_s(port, model, began)
    up.wait()
    [plan] = sorted(Path(environ["XDG_STATE_HOME"]).glob("redline/servers/*/plan.json"))[-1:]
    subprocess.run([*argv, "down", "--all", "--json"], env=environ, stdout=subprocess.DEVNULL, check=True)
    return seconds, json.loads(plan.read_text())


def by_hand(plan: dict[str, Any]) -> float:
    """Boot the planned command as a process of its own group and end it; return the seconds."""
    began = time.monotonic()
    engine = subprocess.Popen(
        plan["argv"],
        env={**os.environ, **dict(plan["env"])},
        cwd=tempfile.gettempdir(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return first_token_s(plan["port"], plan["served_model"], began)
    finally:
        os.killpg(engine.pid, signal.SIGTERM)
        engine.wait()


def main() -> None:
    """Run the pairs and print medians and ranges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slug", default="llamacpp/smollm2-135m-cpu-fast")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--port", type=int, default=8160)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        environ = {**os.environ, "XDG_STATE_HOME": state}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling redline anew at each start is no user's case
        _, plan = by_redline(environ, options.slug, options.port, options.model)  # warms the page cache
        pairs = []
        for number in range(options.pairs):
            if number % 2:
                alone = by_hand(plan)
                with_redline = by_redline(environ, options.slug, options.port, options.model)[0]
            else:
                with_redline = by_redline(environ, options.slug, options.port, options.model)[0]
                alone = by_hand(plan)
            pairs.append((with_redline, alone))
    for words, values in (
        ("redline up", [pair[0] for pair in pairs]),
        ("engine alone", [pair[1] for pair in pairs]),
        ("added", [pair[0] - pair[1] for pair in pairs]),
    ):
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{words:<14} {middle:6.2f} s ({low:.2f} to {high:.2f})   n={len(values)}")


if __name__ == "__main__":
    main()
