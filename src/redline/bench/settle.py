"""Working a GPU until it no longer grows warmer, before anything is measured. Without a GPU there is nothing to settle.

A cold card clocks higher than a warm one: decode was seen 4 % apart, 5 % lost within 3.5 minutes (club-3090#922, #178).
Full steady state takes most of an hour, so what is waited for is a slow rise, and the record says how warm it was.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from redline.bench.measure import Boot, request_for
from redline.bench.regime import Regime
from redline.probe.client import Client
from redline.probe.gpu import GpuHeat, read_heat
from redline.record.event import payload
from redline.workload.prompts import Prompt, PromptClass

_WINDOW_S: Final = 30.0
_RISE_C: Final = 1.0
_TOKENS: Final = 256


class Settled(StrEnum):
    """How the waiting ended."""

    STEADY = "steady"
    STILL_WARMING = "still warming"
    NO_GPU = "no GPU to settle"


@payload("bench.settled")
@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """What was done before the first measured request. Temperatures in degrees Celsius; None without NVML."""

    outcome: Settled
    seconds: float = 0.0
    requests: int = 0
    first_c: float | None = None
    last_c: float | None = None

    def describe(self) -> str:
        """Return it in one line."""
        if self.outcome is Settled.NO_GPU or self.first_c is None or self.last_c is None:
            return "no GPU that NVML knows: nothing to settle"
        return f"{self.first_c:.0f} to {self.last_c:.0f} C in {self.seconds:.0f} s: {self.outcome.value}"


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    temperature_c: float


async def settle(
    client: Client,
    regime: Regime,
    boot: Boot,
    limit_s: float,
    heat: Callable[[], GpuHeat | None] = read_heat,
    clock: Callable[[], float] = time.monotonic,
) -> Settling:
    """Send requests that are not measured until the rise within half a minute is a degree at most, or time is up."""
    first = heat()
    if first is None:
        return Settling(outcome=Settled.NO_GPU)
    started, requests = clock(), 0
    readings = [_Reading(started, first.temperature_c)]
    while True:
        text = f"Tell a long story in which the number {10_000 + requests} matters."
        prompt = Prompt(PromptClass.PROSE, -2 - requests, text)
        await client.chat(request_for(regime, boot, prompt, max_tokens=_TOKENS), timeout_s=boot.timeout_s)
        requests += 1
        now, seen = clock(), heat()
        if seen is not None:
            readings.append(_Reading(now, seen.temperature_c))
        outcome = _outcome(readings, now - started, limit_s)
        if outcome is not None:
            return Settling(
                outcome=outcome,
                seconds=now - started,
                requests=requests,
                first_c=first.temperature_c,
                last_c=readings[-1].temperature_c,
            )


def _outcome(readings: list[_Reading], spent_s: float, limit_s: float) -> Settled | None:
    """Return how it ended, None while it goes on."""
    now = readings[-1].at_s
    window = [row.temperature_c for row in readings if now - row.at_s <= _WINDOW_S]
    if spent_s >= _WINDOW_S and max(window) - min(window) <= _RISE_C:
        return Settled.STEADY
    return Settled.STILL_WARMING if spent_s >= limit_s else None
