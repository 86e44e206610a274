"""What the machine does to a server while it works: throttled GPUs, memory of the server that was swapped out.

No scenario of the fake engine can play these, since a process cannot throttle a card or have itself swapped out.
"""

from typing import Final

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.probe.gpu import GpuSampler, read_heat
from redline.units import MIB, format_bytes

_TOKENS: Final = 256
# Pages of a start that are never read again may be swapped out by a healthy kernel.
_HARMLESS_BYTES: Final = 16 * MIB
# What a user set is a condition; what the card does to save itself is a fault.
_OWN_CHOICE: Final = frozenset({"power cap"})


class Conditions(BaseCheck):
    """The GPUs are not slowed down while they decode."""

    id, title, failure_class = "telemetry.conditions", "GPU conditions", "throttling or power cap"
    most_tokens = (60, _TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Decode for a moment and ask the driver what held the clocks back."""
        if read_heat() is None:
            return self.skip(SkipReason.NOT_OFFERED, "no GPU that NVML knows")
        with GpuSampler() as sampler:
            exchange = await put(context, chat_request(context, "Write about the sea at night.", _TOKENS))
        seen = sampler.summary
        if (broken := trouble(exchange)) or seen is None:
            return self.result(CheckStatus.INCONCLUSIVE, f"nothing was seen: {broken or 'the driver gave nothing'}")
        found = {
            "power_mean_w": seen.power_mean_w,
            "sm_clock_mean_mhz": seen.sm_clock_mean_mhz,
            "temperature_max_c": seen.temperature_max_c,
        }
        metrics = {name: value for name, value in found.items() if value is not None}
        if not seen.throttled:
            return self.result(CheckStatus.PASS, "nothing held the clocks back", metrics=metrics)
        status = CheckStatus.WARN if set(seen.throttled) <= _OWN_CHOICE else CheckStatus.FAIL
        return self.result(status, f"held back by {', '.join(seen.throttled)}", metrics=metrics)


class HostMemory(BaseCheck):
    """None of the server's own memory was swapped out: decoding would wait for a disk."""

    id, title, failure_class = "telemetry.host_memory", "host memory", "swap or offload"

    async def run(self, context: CheckContext) -> CheckResult:
        """Read what the kernel says of the server's processes."""
        swapped = context.swapped_bytes() if context.swapped_bytes else None
        if swapped is None:
            return self.skip(SkipReason.NOT_OFFERED, "the server's processes cannot be seen from here")
        metrics = {"swapped_bytes": float(swapped)}
        if swapped > _HARMLESS_BYTES:
            words = f"{format_bytes(swapped)} of the server's memory are swapped out"
            return self.result(CheckStatus.FAIL, words, metrics=metrics)
        return self.result(CheckStatus.PASS, f"{format_bytes(swapped)} swapped out", metrics=metrics)
