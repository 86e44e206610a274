"""A GPU is worked until it no longer grows warmer; the temperatures and the clock here are given."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redline.bench.measure import Boot
from redline.bench.regime import HONEST_GREEDY
from redline.bench.settle import Settled, Settling, settle
from redline.fake.spawn import fake_engine
from redline.probe.client import Client
from redline.probe.gpu import GpuHeat
from redline.probe.target import Target

_BOOT = Boot(boot_id="b")


def _settled(url: str, temperatures: list[float], limit_s: float) -> Settling:
    """Each reading of the clock is ten seconds after the one before."""
    heat: Iterator[float] = iter(temperatures)
    clock = iter(range(0, 10_000, 10))

    async def run() -> Settling:
        async with Client(Target(url=url, model="redline-fake")) as client:
            return await settle(
                client,
                replace(HONEST_GREEDY),
                _BOOT,
                limit_s,
                lambda: GpuHeat(temperature_c=next(heat), sm_clock_mhz=1800),
                lambda: float(next(clock)),
            )

    return asyncio.run(run())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("settle") / "log"
    with fake_engine("healthy", log, ["--set", "speed.step_s=0.0001"]) as fake:
        yield fake.url


def test_it_ends_when_the_rise_is_small(url: str) -> None:
    found = _settled(url, [40, 50, 58, 63, 66, 66.5, 66.8, 66.9, 99], 300)
    assert (found.outcome, found.requests, found.first_c, found.last_c) == (Settled.STEADY, 7, 40, 66.9)
    assert found.describe() == "40 to 67 C in 70 s: steady"


def test_it_ends_with_the_time_and_says_so(url: str) -> None:
    found = _settled(url, [40, 50, 58, 63, 66, 69, 72, 75, 78], 60)
    assert (found.outcome, found.seconds, found.requests) == (Settled.STILL_WARMING, 60, 6)


def test_without_a_gpu_nothing_is_sent(tmp_path: Path) -> None:
    dead = Client(Target(url="http://127.0.0.1:9", model="m"))
    found = asyncio.run(settle(dead, HONEST_GREEDY, _BOOT, 120, lambda: None))
    assert (found.outcome, found.requests) == (Settled.NO_GPU, 0)
    assert found.describe() == "no GPU that NVML knows: nothing to settle"
