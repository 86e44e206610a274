"""Looks at this machine for what would get in the way, and names one fix for each thing found."""

from collections.abc import Iterator

from redline.ops.doctor_host import look_at_host
from redline.ops.doctor_own import look_at_own
from redline.ops.doctor_runtime import look_at_runtime
from redline.ops.health import Diagnosis, Health
from redline.settings import Settings

__all__ = ["Diagnosis", "Health", "diagnose_host"]


def diagnose_host(settings: Settings, *, load: bool = True) -> Iterator[Diagnosis]:
    """Yield what was found, one line a topic; `load` reads PCIe links while memory is copied, for a second a GPU."""
    yield from look_at_host(load=load)
    yield from look_at_runtime(settings)
    yield from look_at_own(settings)
