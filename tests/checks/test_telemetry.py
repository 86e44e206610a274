"""What the machine does to a server: told from a driver's words and the kernel's."""

import asyncio
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.probe.test_gpu import _driver

from redline.checks.check import CheckContext, CheckResult, CheckStatus
from redline.checks.telemetry import Conditions, HostMemory
from redline.fake.spawn import fake_engine
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.target import Target
from redline.units import MIB


def _host(swapped: int | None) -> CheckResult:
    client = Client(Target(url="http://127.0.0.1:9", model="m"))
    return asyncio.run(
        HostMemory().run(CheckContext(client=client, model=None, drafting=None, swapped_bytes=lambda: swapped))
    )


@pytest.mark.parametrize(
    ("swapped", "status"),
    [(None, CheckStatus.SKIP), (0, CheckStatus.PASS), (MIB, CheckStatus.PASS), (400 * MIB, CheckStatus.FAIL)],
)
def test_swapped_memory_is_a_fault(swapped: int | None, status: CheckStatus) -> None:
    assert _host(swapped).status is status


@pytest.mark.parametrize(
    ("reasons", "status"),
    [
        (None, CheckStatus.SKIP),
        (0x1, CheckStatus.PASS),  # an idle card
        (0x4, CheckStatus.WARN),
        (0x4 | 0x20, CheckStatus.FAIL),
    ],
)
def test_a_card_that_saves_itself_is_a_fault_and_a_power_cap_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reasons: int | None, status: CheckStatus
) -> None:
    driver: ModuleType | None = None
    if reasons is not None:
        driver = _driver(nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: reasons)
    monkeypatch.setitem(sys.modules, "pynvml", driver)

    async def ask(url: str) -> CheckResult:
        async with Client(Target(url=url, model="redline-fake")) as client:
            return await Conditions().run(CheckContext(client=client, model=None, drafting=None))

    with fake_engine("healthy", tmp_path / "log", ["--set", "speed.step_s=0.001"]) as fake:
        assert ServerMemory(fake.url).swapped() is not None
        result = asyncio.run(ask(fake.url))
    assert result.status is status
    if reasons == 0x4 | 0x20:
        assert result.message == "held back by power cap, temperature"
        assert result.metrics["temperature_max_c"] == 61
