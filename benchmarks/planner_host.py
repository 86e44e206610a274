"""The embedded server's own memory report beside the plan: buffers as llama.cpp logs them, and its resident size.

    .venv/bin/python benchmarks/planner_host.py       # seven short starts of SmolLM2-135M, about a minute on two cores

Each start uses the worker's own parameters (`redline.engine.worker`) with llama.cpp's log turned up, and one request.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

import psutil

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.plan.llamacpp import plan_on_host
from redline.rig.detect import detect_rig
from redline.settings import Layers, Sourced, load_settings
from redline.units import MIB

CHILD: Final = """
import signal
import redline.engine.worker as worker
import xllamacpp
params = worker._build_params(xllamacpp, worker._parse_arguments())
params.verbosity = 4
server = xllamacpp.Server(params)
signal.pause()
"""
PORT: Final = 8195
CASES: Final = (
    ("fast", 8192, 512, "f16"),
    ("fast", 8192, 128, "f16"),
    ("fast", 2048, 512, "f16"),
    ("fast", 4096, 512, "q8_0"),
    ("fast", 8192, 512, "q8_0"),
    ("fast", 8192, 512, "q4_0"),
    ("max", 8192, 512, "f16"),
)
BUFFERS: Final = {
    "kv cache": re.compile(r"KV buffer size =\s+([\d.]+) MiB"),
    "compute": re.compile(r"compute buffer size =\s+([\d.]+) MiB"),
    "weights": re.compile(r"CPU_Mapped model buffer size =\s+([\d.]+) MiB"),
    "repacked": re.compile(r"CPU_REPACK model buffer size =\s+([\d.]+) MiB"),
}


def measure(model: Path, context: int, batch: int, cache: str) -> tuple[dict[str, float], float]:
    """Return llama.cpp's buffers and the process's resident size, MiB."""
    options = {"model": model, "alias": "m", "port": PORT, "ctx": context, "threads": 2, "ubatch": batch}
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    argv = [sys.executable, "-P", "-c", CHILD, *flags, "--cache-type", cache]
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            _wait_ready(child)
            body = b'{"prompt": "Memory is", "n_predict": 8}'
            headers = {"content-type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{PORT}/completion", body, headers)
            urllib.request.urlopen(request, timeout=60).read()
            resident = psutil.Process(child.pid).memory_info().rss / MIB
        finally:
            child.kill()
            child.wait()
        log.seek(0)
        text = log.read()
    return {name: sum(map(float, pattern.findall(text))) for name, pattern in BUFFERS.items()}, resident


def _wait_ready(child: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if child.poll() is not None:
            raise SystemExit("the server ended while it loaded")
        try:
            # Another server may hold the port: then the child ends, which the next look shows.
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2):
                return
        except (OSError, ValueError):
            time.sleep(0.1)
    raise SystemExit("the server did not become ready in a minute")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    catalog, settings, rig = load_catalog(), load_settings(), detect_rig()
    heads = ("tier", "context", "batch", "cache", "kv planned/reported", "compute planned/reported", "resident planned")
    print("| " + " | ".join((*heads, "measured", "error")) + " |\n" + "|---" * (len(heads) + 2) + "|")
    for tier_name, context, batch, cache in CASES:
        given = {"MAX_MODEL_LEN": context, "MAX_NUM_BATCHED_TOKENS": batch, "KV_CACHE_DTYPE": cache}
        layers = Layers(cli={name: Sourced(str(value), "cli:--set") for name, value in given.items()})
        tier = resolve(catalog, f"llamacpp/smollm2-135m-cpu-{tier_name}", layers)
        planned = {term.name: term.best_bytes / MIB for term in plan_on_host(catalog, tier, rig).devices[0].terms}
        artifact = catalog.artifacts[tier.artifact.value]
        reported, resident = measure(settings.models_dir / artifact.id / artifact.files[0].path, context, batch, cache)
        whole = sum(planned.values())
        cells = (
            tier_name, f"{context:,}", str(batch), cache,
            f"{planned['kv cache']:.2f} / {reported['kv cache']:.2f}",
            f"{planned['compute']:.2f} / {reported['compute']:.2f}",
            f"{whole:.0f}", f"{resident:.0f}", f"{whole / resident - 1:+.1%}",
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
