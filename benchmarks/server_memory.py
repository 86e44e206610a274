"""Resident memory of the embedded server, fresh and after a prompt of about 7,000 tokens.

python benchmarks/server_memory.py [--slug llamacpp/smollm2-135m-cpu-superfast] [--port 8126]
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from redline.artifacts.store import ensure
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.engine.registry import get_engine
from redline.launch.server import follow, register, start
from redline.launch.state import read_record
from redline.launch.stop import resident_bytes, stop
from redline.ops.servers import target_of
from redline.probe.client import Client
from redline.probe.exchange import ChatRequest, Exchange
from redline.probe.target import Target
from redline.rig.detect import detect_rig
from redline.settings import Sourced, load_settings
from redline.units import MIB


async def ask(target: Target, words: int) -> Exchange:
    text = " ".join(f"{number * 7919 % 100_003}" for number in range(words))
    request = ChatRequest(
        messages=({"role": "user", "content": f"Which number comes last? {text}"},), max_tokens=32, temperature=0.0
    )
    async with Client(target) as client:
        return await client.chat(request)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slug", default="llamacpp/smollm2-135m-cpu-superfast")
    parser.add_argument("--port", default="8126")
    options = parser.parse_args()
    settings = load_settings({"PORT": Sourced(options.port, "cli:--port")})
    catalog = load_catalog()
    tier = resolve(catalog, options.slug, settings.layers)
    ensure(catalog, tier.artifact.value, settings.models_dir)
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, detect_rig(), settings.models_dir)
    with tempfile.TemporaryDirectory() as folder:
        directory, record = register(Path(folder), plan)
        start(directory, dict(os.environ))
        for _ in follow(directory):
            pass
        record = read_record(directory) or record
        fresh = resident_bytes(record)
        exchange = asyncio.run(ask(target_of(record, settings), 1180))
        after = resident_bytes(record)
        stop(directory, record)
    tokens = exchange.usage.prompt_tokens
    print(f"{options.slug}: {fresh / MIB:.0f} MiB fresh, {after / MIB:.0f} MiB after {tokens} tokens")
    if exchange.error:
        raise SystemExit(f"the prompt failed: {exchange.error}")


if __name__ == "__main__":
    main()
