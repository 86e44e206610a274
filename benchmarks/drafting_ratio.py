"""Decode rate with lookup drafting over the same server without it, each prompt once to a fresh server process.

    python benchmarks/drafting_ratio.py [--slug llamacpp/smollm2-135m-cpu-superfast] [--classes edit,code,chat,prose]
        [--prompts 10] [--tokens 160] [--lookups ngram-map-k:4:7:1,ngram-simple:4:12:1]

A fresh process for each request, since lookup drafting remembers earlier answers. Arms run forwards and backwards in
turn, so that a drifting machine hits all of them. The table holds every class asked for, those that lose included.
"""

import argparse
import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from redline.artifacts.store import ensure
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.engine.counters import acceptance, counters_delta
from redline.engine.launch_plan import LaunchPlan
from redline.engine.registry import get_engine
from redline.launch.server import follow, register, start
from redline.launch.state import read_record
from redline.launch.stop import stop
from redline.ops.servers import target_of
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s
from redline.probe.exchange import ChatRequest
from redline.rig.detect import detect_rig
from redline.settings import Settings, Sourced, load_settings
from redline.stats.interval import estimate_mean, estimate_ratio
from redline.workload.prompts import Prompt, PromptClass, prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slug", default="llamacpp/smollm2-135m-cpu-superfast")
    parser.add_argument("--classes", default="edit,code,chat,prose")
    parser.add_argument("--prompts", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--lookups", default="")
    parser.add_argument("--port", default="8127")
    options = parser.parse_args()
    settings = load_settings({"PORT": Sourced(options.port, "cli:--port")})
    arms = make_arms(settings, options.slug, options.lookups)
    print(f"{options.slug}, greedy, {options.tokens} tokens, a fresh server a request, {detect_rig().cpu_model}")
    print("class  drafting                n   tok/s  without  ratio   95 % interval  tokens a drafted step")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.classes.split(","):
            report(name, arms, prompts(PromptClass(name), 1)[: options.prompts], options.tokens, Path(folder), settings)


def make_arms(settings: Settings, slug: str, lookups: str) -> dict[str, LaunchPlan]:
    """Return the launch plans to compare, the one without drafting first."""
    catalog = load_catalog(settings.user_catalog_dir)
    tier = resolve(catalog, slug, settings.layers)
    ensure(catalog, tier.artifact.value, settings.models_dir)
    engine = get_engine(tier.key.engine)
    off = replace(tier, spec_n=Sourced(0, "benchmark"))
    arms = {"none": engine.launch_plan(catalog, off, detect_rig(), settings.models_dir)}
    for text in lookups.split(",") if lookups else []:
        flags = (f"--spec-{name}" for name in ("type", "key", "draft", "hits"))
        extra = [part for pair in zip(flags, text.split(":"), strict=True) for part in pair]
        arms[text] = replace(arms["none"], argv=(*arms["none"].argv, *extra))
    if not lookups:
        arms[tier.drafter.value] = engine.launch_plan(catalog, tier, detect_rig(), settings.models_dir)
    return arms


def report(
    name: str, arms: dict[str, LaunchPlan], chosen: tuple[Prompt, ...], tokens: int, folder: Path, settings: Settings
) -> None:
    """Measure one class on every arm and print its rows."""
    rates: dict[str, list[float]] = {arm: [] for arm in arms}
    counts = {arm: [0, 0] for arm in arms}
    for index, prompt in enumerate(chosen):
        order = list(arms) if index % 2 == 0 else list(reversed(arms))
        for arm in order:
            rate, drafts, accepted = measure(arms[arm], prompt, tokens, folder, settings)
            rates[arm].append(rate)
            counts[arm] = [counts[arm][0] + drafts, counts[arm][1] + accepted]
    for arm in list(arms)[1:]:
        ratio = estimate_ratio(rates[arm], rates["none"])
        drafts, accepted = counts[arm]
        length = f"{1 + accepted / drafts:.2f}" if drafts else "nothing drafted"
        means = f"{estimate_mean(rates[arm]).mean:>8.1f}{estimate_mean(rates['none']).mean:>9.1f}"
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        print(f"{name:<7}{arm:<22}{ratio.n:>3}{means}{ratio.mean:>7.2f}   {interval:<14} {length}", flush=True)


def measure(plan: LaunchPlan, prompt: Prompt, tokens: int, folder: Path, settings: Settings) -> tuple[float, int, int]:
    """Serve, warm up, ask once, stop; return decode rate, drafts and accepted tokens."""
    directory, record = register(folder, plan)
    start(directory, dict(os.environ))
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
