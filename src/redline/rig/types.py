"""A rig as a frozen value: what a plan may count on, and what a record says a number was measured on."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as its driver reports it; sizes in bytes. `compute` is the CUDA compute capability, `8.6`."""

    index: int
    name: str
    uuid: str
    memory_total_bytes: int
    memory_free_bytes: int
    compute: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """Host and GPUs. Processor and memory counts respect the limits this process runs under."""

    cpu_model: str
    cpus: int
    memory_total_bytes: int
    memory_available_bytes: int
    kernel: str
    wsl: bool
    gpus: tuple[Gpu, ...] = ()
    driver_version: str | None = None

    @property
    def fingerprint(self) -> dict[str, str | int | None]:
        """What two measurements must share to be of one rig; holds nothing that names a person or a machine."""
        gpus = ", ".join(f"{gpu.name} {gpu.memory_total_bytes}" for gpu in self.gpus)
        facts: dict[str, str | int | None] = {
            "cpu_model": self.cpu_model,
            "cpus": self.cpus,
            "memory_gib": round(self.memory_total_bytes / 2**30),
            "gpus": gpus or None,
            "driver_version": self.driver_version,
            "wsl": int(self.wsl),
        }
        digest = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:12]
        return {**facts, "digest": digest}

    def describe(self) -> str:
        """Return the rig in a few words: '2 CPUs, no GPU' or '2x NVIDIA GeForce RTX 3090'."""
        if not self.gpus:
            return f"{self.cpus} CPU{'s' if self.cpus != 1 else ''}, no GPU"
        names = [gpu.name for gpu in self.gpus]
        return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))
