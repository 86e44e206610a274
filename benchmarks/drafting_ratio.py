"""Decode rate of one tier over another, prompt by prompt: each prompt goes once to a fresh server of each tier.

    python benchmarks/drafting_ratio.py [--a SLUG] [--b SLUG] [--classes edit,code,...] [--prompts 10] [--tokens 160]

A fresh process for each request, since lookup drafting remembers earlier answers. Arms run as A B B A B A A B ... so
that a drifting machine hits both. The table holds every class that was asked for, those that lose included.
"""

import argparse
import asyncio
import os
import tempfile
from pathlib import Path

from redline.artifacts.store import ensure
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.counters import acceptance, counters_delta
from redline.engine.registry import get_engine
from redline.launch.server import follow, start, stop
from redline.launch.state import read_record
from redline.ops.servers import target_of
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s
from redline.probe.exchange import ChatRequest
from redline.rig.detect import detect_rig
from redline.settings import Settings, load_settings
from redline.stats.interval import estimate_mean, estimate_ratio
from redline.workload.prompts import Prompt, PromptClass, prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default="llamacpp/smollm2-135m-cpu-superfast")
    parser.add_argument("--b", default="llamacpp/smollm2-135m-cpu-fast")
    parser.add_argument("--classes", default="edit,code,chat,prose")
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=160)
    options = parser.parse_args()
    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    print(
        f"A {options.a}\nB {options.b}\n"
        f"greedy, {options.tokens} tokens, a fresh server a request, {detect_rig().cpu_model}"
    )
    print(f"{'class':<7}{'n':>3}{'A tok/s':>9}{'B tok/s':>9}{'A/B':>7}   95 % interval   tokens a drafted step (A)")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.classes.split(","):
            rates: dict[str, list[float]] = {options.a: [], options.b: []}
            drafts = accepted = 0
            for index, prompt in enumerate(prompts(PromptClass(name), 1)[: options.prompts]):
                order = (options.a, options.b) if index % 4 in (0, 3) else (options.b, options.a)
                for slug in order:
                    rate, step_drafts, step_accepted = measure(
                        catalog, settings, slug, prompt, options.tokens, Path(folder)
                    )
                    rates[slug].append(rate)
                    if slug == options.a:
                        drafts, accepted = drafts + step_drafts, accepted + step_accepted
            ratio = estimate_ratio(rates[options.a], rates[options.b])
            length = f"{1 + accepted / drafts:.2f}" if drafts else "nothing drafted"
            means = [estimate_mean(rates[slug]).mean for slug in (options.a, options.b)]
            interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
            print(
                f"{name:<7}{ratio.n:>3}{means[0]:>9.1f}{means[1]:>9.1f}{ratio.mean:>7.2f}   {interval:<15} {length}",
                flush=True,
            )


def measure(
    catalog: Catalog, settings: Settings, slug: str, prompt: Prompt, tokens: int, folder: Path
) -> tuple[float, int, int]:
    """Serve, warm up, ask once, stop; return decode rate, drafts and accepted tokens."""
    tier = resolve(catalog, slug, settings.layers)
    ensure(catalog, tier.artifact.value, settings.models_dir)
    plan = get_engine(tier.key.engine).launch_plan(catalog, tier, detect_rig(), settings.models_dir)
    directory, record = start(folder, plan, dict(os.environ))
    try:
        for _ in follow(directory):
            pass
        record = read_record(directory) or record
        return asyncio.run(ask(Client(target_of(record, settings)), prompt, tokens))
    finally:
        stop(directory, read_record(directory) or record)


async def ask(client: Client, prompt: Prompt, tokens: int) -> tuple[float, int, int]:
    async with client:
        warm = ChatRequest(messages=({"role": "user", "content": "Good morning."},), max_tokens=8, temperature=0.0)
        await client.chat(warm)
        before = await client.counters()
        request = ChatRequest(messages=prompt.messages, max_tokens=tokens, temperature=0.0)
        exchange = await client.chat(request)
        after = await client.counters()
    rate = decode_tok_s(exchange)
    if rate is None:
        raise SystemExit(f"no rate for {prompt.prompt_class} {prompt.index}: {exchange.error or exchange.content!r}")
    found = acceptance(counters_delta(before, after)) if before and after else None
    return rate, found.drafts if found else 0, found.accepted_tokens if found else 0


if __name__ == "__main__":
    main()
