"""The GPU sampler without a GPU, and with a driver's interface that says known numbers."""

import sys
import types
from typing import Any

import pytest

from redline.probe.gpu import GpuSampler, gpu_memory_bytes


def _driver(**changes: Any) -> types.ModuleType:
    """Return a module that answers like NVML for two cards: 100 W each, and 30 J used between two readings."""
    energy = iter([1_000_000, 1_000_000, 1_015_000, 1_015_000])
    found: Any = types.ModuleType("pynvml")
    found.NVMLError = type("NVMLError", (Exception,), {})
    found.NVML_CLOCK_SM, found.NVML_TEMPERATURE_GPU = 1, 0
    found.nvmlInit = lambda: None
    found.nvmlDeviceGetCount = lambda: 2
    found.nvmlDeviceGetHandleByIndex = lambda index: index
    found.nvmlDeviceGetPowerUsage = lambda _handle: 100_000
    found.nvmlDeviceGetClockInfo = lambda _handle, _kind: 1800
    found.nvmlDeviceGetTemperature = lambda handle, _kind: 60 + handle
    found.nvmlDeviceGetMemoryInfo = lambda _handle: types.SimpleNamespace(used=10)
    found.nvmlDeviceGetCurrentClocksThrottleReasons = lambda handle: 0x4 if handle else 0x1
    found.nvmlDeviceGetTotalEnergyConsumption = lambda _handle: next(energy)
    found.nvmlDeviceGetComputeRunningProcesses = lambda handle: [
        types.SimpleNamespace(pid=7, usedGpuMemory=100),
        types.SimpleNamespace(pid=8 + handle, usedGpuMemory=1000),
    ]
    for name, value in changes.items():
        setattr(found, name, value)
    return found  # type: ignore[no-any-return]


def test_without_nvml_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with GpuSampler() as sampler:
        pass
    assert sampler.summary is None
    assert gpu_memory_bytes(frozenset({1})) is None


def test_known_numbers_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _driver())
    with GpuSampler() as sampler:
        while not sampler._rows:
            pass
    found = sampler.summary
    assert found is not None
    assert (found.devices, found.energy_j, found.power_mean_w, found.memory_max_bytes) == (2, 30.0, 200.0, 20)
    assert (found.sm_clock_mean_mhz, found.temperature_max_c, found.throttled) == (1800, 61, ("power cap",))


def test_memory_is_that_of_the_processes_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _driver())
    assert gpu_memory_bytes(frozenset({7})) == 200
    assert gpu_memory_bytes(frozenset({9})) == 1000


def test_a_card_without_an_energy_counter_has_no_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = _driver()

    def refuse(_handle: int) -> int:
        raise driver.NVMLError

    driver.nvmlDeviceGetTotalEnergyConsumption = refuse
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    with GpuSampler() as sampler:
        while not sampler._rows:
            pass
    assert sampler.summary is not None
    assert sampler.summary.energy_j is None
