"""How GPUs are linked: to each other (NVLink, peer access), and to the host (PCIe width and generation, under load).

An idle GPU lowers its PCIe generation, so width and generation are read while memory is being copied to it. The copying
is done through the driver's own library, without any CUDA package.
"""

import ctypes
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from redline.rig.types import Rig

_TIMEOUT_S: Final = 10
_LOAD_S: Final = 1.0
_COPY_BYTES: Final = 64 * 2**20
_FIELDS: Final = "index,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"


@dataclass(frozen=True, slots=True)
class PcieLink:
    """A GPU's link to the host. `copied_gb_s` is what the load itself reached, None where there was no load."""

    gpu: int
    generation: int
    generation_max: int
    width: int
    width_max: int
    copied_gb_s: float | None = None


@dataclass(frozen=True, slots=True)
class PeerLink:
    """How two GPUs reach each other: nvidia-smi's word (NV4, PHB, SYS), and whether the driver grants peer access."""

    first: int
    second: int
    word: str
    peer: bool | None

    @property
    def nvlink(self) -> bool:
        """Whether NVLink joins them."""
        return self.word.startswith("NV")


def pcie_links(*, load: bool = True) -> tuple[PcieLink, ...]:
    """Return the links to the host; under load where the driver's library can be had. Nothing without nvidia-smi."""
    idle = _read_links()
    if not idle or not load:
        return idle
    found = []
    for link in idle:
        reached, seen = copy_while(link.gpu, _read_links)
        busy = next((item for item in seen if item.gpu == link.gpu), link)
        found.append(
            PcieLink(link.gpu, busy.generation, link.generation_max, busy.width, link.width_max, copied_gb_s=reached)
        )
    return tuple(found)


def _read_links() -> tuple[PcieLink, ...]:
    return parse_links(_smi([f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]))


def parse_links(text: str) -> tuple[PcieLink, ...]:
    """Return the rows of `nvidia-smi --query-gpu` CSV; lines of another shape are left out."""
    rows = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 5 and all(cell.isdigit() for cell in cells):
            rows.append(PcieLink(*(int(cell) for cell in cells)))
    return tuple(rows)


def peer_links() -> tuple[PeerLink, ...]:
    """Return how each pair of GPUs is joined; nothing without nvidia-smi or with one GPU."""
    words = parse_topology(_smi(["topo", "-m"]))
    granted = _peer_access()
    return tuple(PeerLink(a, b, word, granted(a, b)) for (a, b), word in sorted(words.items()))


def parse_topology(text: str) -> dict[tuple[int, int], str]:
    """Return the word for each pair of GPUs from `nvidia-smi topo -m`; each pair once, the lower index first."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    rows = [line.split() for line in plain.splitlines() if re.match(r"GPU\d+\s.*\bX\b", line)]
    found = {}
    for first, cells in enumerate(rows):
        for second, word in enumerate(cells[1 : len(rows) + 1]):  # network cards have columns too, after the GPUs'
            if second > first:
                found[first, second] = word
    return found


def rig_record(rig: Rig, *, load: bool = False) -> dict[str, str | int | None]:
    """Return the rig's fingerprint with, for several GPUs, how they are joined: it moves every number they give.

    With `load` a second of copying a GPU tells the generation that its link reaches; without it only the width is said.
    """
    if len(rig.gpus) < 2:
        return rig.fingerprint
    return {**rig.fingerprint, "interconnect": interconnect_words(pcie_links(load=load), peer_links())}


def interconnect_words(pcie: Sequence[PcieLink], peers: Sequence[PeerLink]) -> str:
    """Return how GPUs are joined in a phrase: 'through the host (PHB); PCIe x16 and x4'."""
    if not peers:
        joined = "how the GPUs are joined is not known"
    elif all(link.nvlink for link in peers):
        joined = "NVLink between all pairs"
    elif all(link.peer for link in peers):
        joined = "peer access over PCIe between all pairs"
    else:
        joined = f"through the host ({', '.join(dict.fromkeys(link.word for link in peers))})"
    hosts = dict.fromkeys(_host_words(link) for link in pcie)
    return f"{joined}; PCIe {' and '.join(hosts)}" if hosts else joined


def _host_words(link: PcieLink) -> str:
    if link.copied_gb_s is None:  # an idle link lowers its generation, and keeps its width
        return f"x{link.width}"
    return f"{link.generation}.0 x{link.width}"


def _smi(arguments: list[str]) -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _peer_access() -> Callable[[int, int], bool | None]:
    """Return a function that asks the driver whether one GPU may read another's memory."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        ready = cuda.cuInit(0) == 0
    except OSError:
        ready = False

    def ask(first: int, second: int) -> bool | None:
        if not ready:
            return None
        answer = ctypes.c_int(0)
        return bool(answer.value) if cuda.cuDeviceCanAccessPeer(ctypes.byref(answer), first, second) == 0 else None

    return ask


def copy_while(gpu: int, look: Callable[[], tuple[PcieLink, ...]]) -> tuple[float | None, tuple[PcieLink, ...]]:
    """Copy host memory to a GPU for about a second, look meanwhile, and return GB/s and what was seen.

    The rate is None where the driver's library is not there or refuses, or the GPU has no room for the copy.
    """
    seen: list[tuple[PcieLink, ...]] = []
    rate: list[float] = []

    def work() -> None:
        with suppress(OSError):
            reached = _copy(gpu, _LOAD_S)
            if reached is not None:
                rate.append(reached)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(_LOAD_S / 3)
    seen.append(look())
    thread.join(_LOAD_S * 10)
    return (rate[0] if rate else None), seen[0]


def _copy(gpu: int, seconds: float) -> float | None:
    """Return the GB/s of copies from pinned host memory, through the driver's API (cuda.h)."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # else the driver counts from the fastest, and nvidia-smi does not
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    host, there = ctypes.c_void_p(), ctypes.c_uint64()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), gpu):
        return None
    # The primary context is shared and counted by the driver; it costs some hundred MB while this runs.
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return None
    try:
        if cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(there), ctypes.c_size_t(_COPY_BYTES)):
            return None
        try:
            if cuda.cuMemAllocHost_v2(ctypes.byref(host), ctypes.c_size_t(_COPY_BYTES)):
                return None
            copies, began = 0, time.monotonic()
            while time.monotonic() - began < seconds:
                if cuda.cuMemcpyHtoD_v2(there, host, ctypes.c_size_t(_COPY_BYTES)):
                    return None
                copies += 1
            return copies * _COPY_BYTES / (time.monotonic() - began) / 1e9
        finally:
            if host.value:
                cuda.cuMemFreeHost(host)
            cuda.cuMemFree_v2(there)
    finally:
        cuda.cuDevicePrimaryCtxRelease_v2(device)
