"""What the GPUs did over a stretch of work: energy, power, clocks, memory, reasons for throttling. None without NVML.

Needs nvidia-ml-py and a driver; without either there is no sampler, and every field that would hold its numbers is
None. Knows devices, not who works on them.
"""

import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

_HZ: Final = 5.0
# Bits of nvmlDeviceGetCurrentClocksThrottleReasons (nvml.h); idle and application clocks are no throttling.
_REASONS: Final = {0x4: "power cap", 0x8: "hardware", 0x20: "temperature", 0x40: "hardware temperature", 0x80: "brake"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSummary:
    """All watched GPUs together; energy from the driver's own counter where it keeps one."""

    devices: int
    energy_j: float | None
    power_mean_w: float | None
    sm_clock_mean_mhz: float | None
    temperature_max_c: float | None
    memory_max_bytes: int | None
    throttled: tuple[str, ...]


class GpuSampler:
    """Samples while its block runs; `summary` is None where there is nothing to ask."""

    def __init__(self, indices: tuple[int, ...] | None = None) -> None:
        self.summary: GpuSummary | None = None
        self._nvml, self._handles = _open(indices)
        self._stop = threading.Event()
        self._rows: list[tuple[float, float, float, int]] = []
        self._reasons = 0
        self._thread: threading.Thread | None = None
        self._energy_before: float | None = None

    def __enter__(self) -> Self:
        if self._handles:
            self._energy_before = self._energy()
            self._thread = threading.Thread(target=self._watch, name="redline-gpu", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self.summary = self._summarise()

    def _watch(self) -> None:
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                self._rows.append(self._read())
            except self._nvml.NVMLError:
                return  # a device that fell off its bus ends the sampling, not the measuring
            self._stop.wait(max(0.0, 1 / _HZ - (time.monotonic() - started)))

    def _read(self) -> tuple[float, float, float, int]:
        nvml, power, clock, heat, memory = self._nvml, 0.0, 0.0, 0.0, 0
        for handle in self._handles:
            power += nvml.nvmlDeviceGetPowerUsage(handle) / 1000
            clock += nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) / len(self._handles)
            heat = max(heat, nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
            memory += int(nvml.nvmlDeviceGetMemoryInfo(handle).used)
            self._reasons |= int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return power, clock, heat, memory

    def _energy(self) -> float | None:
        try:
            return float(sum(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in self._handles)) / 1000
        except self._nvml.NVMLError:
            return None  # cards before Volta keep no such counter

    def _summarise(self) -> GpuSummary:
        after, rows = self._energy(), self._rows
        energy = after - self._energy_before if after is not None and self._energy_before is not None else None
        return GpuSummary(
            devices=len(self._handles),
            energy_j=energy,
            power_mean_w=sum(row[0] for row in rows) / len(rows) if rows else None,
            sm_clock_mean_mhz=sum(row[1] for row in rows) / len(rows) if rows else None,
            temperature_max_c=max((row[2] for row in rows), default=None),
            memory_max_bytes=max((row[3] for row in rows), default=None),
            throttled=tuple(words for bit, words in _REASONS.items() if self._reasons & bit),
        )


def gpu_memory_bytes(pids: frozenset[int]) -> int | None:
    """Return the GPU memory that these processes hold, or None where NVML cannot say.

    By process and not by device: a sum over all devices of a host counts everybody's memory.
    """
    nvml, handles = _open(None)
    if not handles:
        return None
    try:
        rows = [row for handle in handles for row in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]
    except nvml.NVMLError:
        return None
    held = [row.usedGpuMemory for row in rows if row.pid in pids]
    return None if any(value is None for value in held) else sum(int(value) for value in held)


def least_gpu_free_bytes(indices: tuple[int, ...] | None = None) -> int | None:
    """Return the free memory of the fullest of these GPUs, None where NVML cannot say.

    The least and not the sum: the card that is full is the one that runs out.
    """
    nvml, handles = _open(indices)
    if not handles:
        return None
    try:
        return min(int(nvml.nvmlDeviceGetMemoryInfo(handle).free) for handle in handles)
    except nvml.NVMLError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHeat:
    """How warm the warmest GPU is now, and the mean clock of all."""

    temperature_c: float
    sm_clock_mhz: float


def read_heat(indices: tuple[int, ...] | None = None) -> GpuHeat | None:
    """Return temperature and clock now, None without NVML."""
    nvml, handles = _open(indices)
    if not handles:
        return None
    try:
        heat = [float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)) for handle in handles]
        clocks = [float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)) for handle in handles]
    except nvml.NVMLError:
        return None
    return GpuHeat(temperature_c=max(heat), sm_clock_mhz=sum(clocks) / len(clocks))


def _open(indices: tuple[int, ...] | None) -> tuple[Any, tuple[Any, ...]]:
    try:
        import pynvml
    except ImportError:
        return None, ()
    try:
        pynvml.nvmlInit()
        chosen = indices if indices is not None else tuple(range(pynvml.nvmlDeviceGetCount()))
        return pynvml, tuple(pynvml.nvmlDeviceGetHandleByIndex(index) for index in chosen)
    except pynvml.NVMLError:
        return None, ()
