"""The machine for `doctor`: processor, memory, driver, GPUs, their links, and the traps of WSL2."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redline.ops.health import Diagnosis, Health
from redline.rig.detect import detect_rig
from redline.rig.links import PcieLink, PeerLink, pcie_links, peer_links
from redline.rig.types import Rig
from redline.units import GIB, format_gib

_BUSY_SHARE: Final = 0.1
_SLOW_WIDTH: Final = 8


def look_at_host(*, load: bool) -> Iterator[Diagnosis]:
    """Yield what is found of the hardware."""
    rig = detect_rig()
    yield Diagnosis("python", Health.OK, f"CPython {'.'.join(map(str, sys.version_info[:3]))}")
    yield Diagnosis("cpu", Health.OK, f"{rig.cpus} usable, {rig.cpu_model}")
    yield _memory(rig)
    yield from _gpus(rig)
    if rig.gpus:
        yield from map(pcie_line, pcie_links(load=load))
    if len(rig.gpus) > 1:
        yield peer_line(peer_links())
    if rig.wsl:
        yield from wsl_lines(rig, Path("/mnt/c/Users"))


def _memory(rig: Rig) -> Diagnosis:
    free, total = format_gib(rig.memory_available_bytes), format_gib(rig.memory_total_bytes)
    if rig.memory_available_bytes < GIB:
        return Diagnosis("memory", Health.WARN, f"{free} of {total} available", "Close programs that hold memory.")
    return Diagnosis("memory", Health.OK, f"{free} of {total} available")


def _gpus(rig: Rig) -> Iterator[Diagnosis]:
    if not rig.gpus:
        if shutil.which("nvidia-smi"):
            fix = "Run nvidia-smi to see what the driver says; a new kernel wants the driver built again, or a restart."
            yield Diagnosis("gpu", Health.WARN, "nvidia-smi is there and lists no GPU", fix)
        elif any(Path("/proc/bus/pci").glob("*")) and _nvidia_on_bus():
            fix = "Install NVIDIA's driver for this system, then restart."
            yield Diagnosis("gpu", Health.BAD, "there is an NVIDIA GPU and no driver for it", fix)
        else:
            yield Diagnosis("gpu", Health.OK, "none: the embedded tiers run on the processor")
        return
    yield Diagnosis("driver", Health.OK, f"{rig.driver_version}")
    for gpu in rig.gpus:
        words = (
            f"{gpu.index}: {gpu.name}, {format_gib(gpu.memory_free_bytes)} of {format_gib(gpu.memory_total_bytes)} free"
        )
        held = gpu.memory_total_bytes - gpu.memory_free_bytes
        if held > _BUSY_SHARE * gpu.memory_total_bytes:
            fix = "`redline ps` and nvidia-smi show who holds it; a desktop can use another GPU."
            yield Diagnosis("gpu", Health.WARN, words, fix)
        else:
            yield Diagnosis("gpu", Health.OK, words)


def _nvidia_on_bus() -> bool:
    for path in Path("/sys/bus/pci/devices").glob("*/vendor"):
        try:
            found = path.read_text(encoding="ascii").strip() == "0x10de"
            kind = (path.parent / "class").read_text(encoding="ascii")
        except OSError:
            continue
        if found and kind.startswith("0x03"):  # PCI class 03: display controllers
            return True
    return False


def pcie_line(link: PcieLink) -> Diagnosis:
    """Return the line of a link to the host. Without a load the generation of an idle GPU means nothing."""
    words = f"GPU {link.gpu}: PCIe {link.generation}.0 x{link.width}, of {link.generation_max}.0 x{link.width_max}"
    if link.copied_gb_s is None:
        return Diagnosis("link", Health.OK, f"{words} (idle; generation and width may rise under load)")
    words += f", {link.copied_gb_s:.1f} GB/s copied to it"
    narrow = link.width < link.width_max and link.width < _SLOW_WIDTH
    if narrow or link.generation < min(3, link.generation_max):
        fix = "Prefill over several GPUs suffers: use a slot with more lanes, and look at risers and the BIOS."
        return Diagnosis("link", Health.WARN, words, fix)
    return Diagnosis("link", Health.OK, words)


def peer_line(links: tuple[PeerLink, ...]) -> Diagnosis:
    """Return one line for how the GPUs reach each other."""
    if not links:
        return Diagnosis(
            "peers", Health.WARN, "nvidia-smi does not say how the GPUs are joined", "Run nvidia-smi topo -m."
        )
    if all(link.nvlink for link in links):
        return Diagnosis("peers", Health.OK, "NVLink between all pairs: NVLINK_MODE=force_on uses it")
    if all(link.peer for link in links):
        return Diagnosis("peers", Health.OK, "peer access over PCIe between all pairs: NVLINK_MODE=pcie_p2p uses it")
    words = ", ".join(dict.fromkeys(link.word for link in links))
    return Diagnosis("peers", Health.OK, f"through the host ({words}); tiers of several GPUs are set for that")


def wsl_lines(rig: Rig, users: Path) -> Iterator[Diagnosis]:
    """Yield the traps of WSL2: half the memory by default, the watchdog of Windows (club-3090#32, #60)."""
    settings = [path for path in users.glob("*/.wslconfig") if path.is_file()]
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in settings)
    if not re.search(r"^\s*memory\s*=", text, re.MULTILINE):
        fix = "Write memory=24GB and swap=8GB under [wsl2] in .wslconfig, then: wsl --shutdown."
        words = f"WSL2 gives this system half of the machine's memory, {format_gib(rig.memory_total_bytes)}"
        yield Diagnosis("wsl2", Health.WARN, words, fix)
    else:
        yield Diagnosis("wsl2", Health.OK, f".wslconfig sets the memory, {format_gib(rig.memory_total_bytes)} here")
    if rig.gpus:
        words = "Windows resets a GPU whose kernel runs for more than two seconds"
        yield Diagnosis("wsl2", Health.WARN, words, "Raise TdrDelay in the Windows registry for long prompts.")
