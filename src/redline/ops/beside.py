"""Two servers at once against each other: two tiers started beside each other, or two endpoints, requests in turn.

Two tiers may be started anew several times; endpoints are one boot each, so of them the ratio is given and no verdict.
"""

import asyncio
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from redline.bench.arms import ArmBoot, ClassVerdict
from redline.bench.beside import ARMS, paired_ratio, run_beside
from redline.bench.measure import Boot
from redline.bench.quick import BenchSample
from redline.bench.regime import Regime
from redline.catalog.types import Catalog
from redline.errors import RedlineError, UsageError
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord
from redline.launch.stop import stop
from redline.ops.ab import AbPlan, arm_boot, class_verdict, require_comparable
from redline.ops.events import Event, ProofEvent, RunSaved, SampleDone
from redline.ops.prepare import UpRequest
from redline.ops.server_events import AlreadyRunning, Started
from redline.ops.servers import target_of
from redline.ops.stream import drain
from redline.ops.up import up
from redline.probe.client import Client
from redline.probe.target import Secret, Target
from redline.record.run import Run
from redline.settings import Settings

_URL: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Side:
    """One arm's server in one of its lives."""

    target: Target
    boot: Boot
    named: ArmBoot


def are_urls(plan: AbPlan) -> bool:
    """Whether the arms are endpoints.

    Raises:
        UsageError: one is and the other is not, or they are to be started several times.
    """
    urls = [name.startswith(_URL) for name in (plan.a, plan.b)]
    if any(urls) and not all(urls):
        raise UsageError("Of the two arms one is a URL and one is a tier.", next_step="Give two of a kind.")
    if all(urls) and plan.boots != 1:
        raise UsageError("An endpoint cannot be started anew by redline: --boots 1 is all there is.")
    return all(urls)


def bench_beside(
    catalog: Catalog, settings: Settings, run: Run, regime: Regime, plan: AbPlan
) -> Iterator[Event | ProofEvent | ClassVerdict]:
    """Yield every step and sample, then a verdict a class. Tiers that were started are stopped again.

    Raises:
        UsageError: the regime sends one prompt again and again, or the arms are no pair.
        RefusedError: the arms are confounded, or both do not fit at once.
    """
    if regime.repeats:
        raise UsageError(f"{regime.name} sends one prompt again and again; beside each other prompts are paired.")
    urls = are_urls(plan)
    found = () if urls else require_comparable(catalog, settings, plan)
    samples: dict[str, list[BenchSample]] = {arm: [] for arm in ARMS}
    for number in range(plan.boots):
        try:
            sides = _endpoints(settings, plan) if urls else (yield from _start_both(catalog, settings, plan, number))
            for arm in ARMS:
                run.append(sides[arm].named)
            yield from _measure(run, regime, sides, samples)
        finally:
            if not urls:
                _stop_both(settings, plan)
    for kind in regime.classes:
        verdict = class_verdict(samples, kind, regime, plan, found)
        if verdict is not None:
            verdict = replace(verdict, paired=paired_ratio(samples["A"], samples["B"], kind))
            run.append(verdict)
            yield verdict


def _name(plan: AbPlan, arm: str) -> str:
    return plan.a if arm == "A" else plan.b


def _measure(
    run: Run, regime: Regime, sides: Mapping[str, Side], samples: Mapping[str, list[BenchSample]]
) -> Iterator[SampleDone]:
    total = 2 * sum(min(20, len(regime.prompts(kind))) for kind in regime.classes)
    number = 0
    with asyncio.Runner() as runner:
        clients = {arm: Client(side.target) for arm, side in sides.items()}
        boots = {arm: side.boot for arm, side in sides.items()}
        try:
            for arm, sample in drain(runner, run_beside(clients, regime, boots)):
                run.append(sample)
                samples[arm].append(sample)
                number += 1
                yield SampleDone(sample=sample, number=number, total=total)
        finally:
            for client in clients.values():
                runner.run(client.__aexit__(None, None, None))


def _endpoints(settings: Settings, plan: AbPlan) -> dict[str, Side]:
    key = settings.secret("REDLINE_API_KEY")
    secret = Secret(key) if key else None

    async def listed(url: str) -> str:
        async with Client(Target(url=url, model="", api_key=secret)) as client:
            ids = await client.model_ids()
            return ids[0] if ids else ""

    sides = {}
    for arm in ARMS:
        url = _name(plan, arm).rstrip("/").removesuffix("/v1")
        target = Target(url=url, model=asyncio.run(listed(url)), api_key=secret)
        boot = Boot(boot_id=f"endpoint-{arm}", timeout_s=plan.timeout_s)
        sides[arm] = Side(target, boot, ArmBoot(arm=arm, slug=_name(plan, arm), boot_id=boot.boot_id))
    return sides


def _start_both(
    catalog: Catalog, settings: Settings, plan: AbPlan, number: int
) -> Generator[Event, None, dict[str, Side]]:
    sides: dict[str, Side] = {}
    _stop_both(settings, plan)
    for arm in ARMS if number % 2 == 0 else ARMS[::-1]:
        slug, record = _name(plan, arm), None
        request = UpRequest(slug=slug, overrides=plan.overrides, beside=True, measure=False)
        for event in up(catalog, settings, request):
            record = event.server if isinstance(event, Started | AlreadyRunning) else record
            if not isinstance(event, RunSaved):
                yield event
        sides[arm] = _side(catalog, settings, record, plan, arm)
    return sides


def _side(catalog: Catalog, settings: Settings, record: ServerRecord | None, plan: AbPlan, arm: str) -> Side:
    assert record is not None, "`up` ends with a server or raises"
    model = catalog.models[catalog.tiers[record.slug].model]
    thinks = model.capabilities.thinking.offered
    boot = Boot(boot_id=record.server_id, thinking_switch=thinks, timeout_s=plan.timeout_s)
    return Side(target_of(record, settings), boot, arm_boot(arm, _name(plan, arm), record))


def _stop_both(settings: Settings, plan: AbPlan) -> None:
    for folder, record in running_servers(settings.servers_dir):
        if record.slug in (plan.a, plan.b):
            with suppress(RedlineError):
                stop(folder, record)
