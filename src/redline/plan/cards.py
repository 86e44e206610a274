"""GPUs as a plan sees them: what an engine calls the total, what is free, and where each number is from.

Knows hardware records and rigs, real ones and ones spelt `2x3090`; knows no model.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from redline.catalog.memory import Hardware
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.rig.types import Gpu, Rig
from redline.units import GIB

# A GPU whose record is missing: PyTorch sees about this share of the driver's total (hardware.yaml: 0.977 to 0.996).
UNLISTED_VISIBLE_SHARE: Final = 0.98
# What the engine's own CUDA context takes before it looks: 0.26 GiB on a 3090 that nothing else uses.
CONTEXT_BYTES: Final = round(0.3 * GIB)
WSL_BYTES: Final = round(1.3 * GIB)  # Windows' desktop and WDDM, of the free memory and not of the total
MAX_GPUS: Final = 64
_GROUP: Final = re.compile(r"^(\d{1,3})x(.+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One GPU. Bytes are PyTorch's; `compute` and `hardware` (a record's id) are None when not known."""

    name: str
    compute: str | None
    total_bytes: int
    free_bytes: int
    basis: str
    hardware: str | None = None


def cards_of(catalog: Catalog, rig: Rig) -> tuple[Card, ...]:
    """Return the GPUs of a rig, in its order."""
    return tuple(_card(catalog, rig, gpu) for gpu in rig.gpus)


def find_hardware(catalog: Catalog, name: str) -> Hardware | None:
    """Return the record of a GPU by id, title, or the part of either that people say: `3090`, `RTX 3090`, `h200`."""
    wanted = _plain(name)
    for item in catalog.hardware.values():
        if wanted in (_plain(item.id), _plain(item.title)):
            return item
    ends = [item for item in catalog.hardware.values() if wanted and wanted in (_tail(item.id), _tail(item.title))]
    return ends[0] if ends else None


def rig_of_words(catalog: Catalog, text: str) -> Rig:
    """Return a rig from words such as `2x3090`, `1x5090+1x3090` or `h200`; its GPUs are idle and its host is ample.

    Raises:
        UsageError: a word that names no known GPU, or an absurd count.
    """
    gpus: list[Gpu] = []
    for part in re.split(r"[+,]", text.strip()):
        match = _GROUP.match(part.strip().lower())
        count, name = (int(match[1]), match[2]) if match else (1, part)
        hardware = find_hardware(catalog, name)
        if hardware is None:
            known = ", ".join(sorted(_tail(item.id) for item in catalog.hardware.values()))
            raise UsageError(
                f"--rig {text}: no GPU is called {name.strip()!r} here.",
                next_step=f"Write a count and a name, such as 2x3090 (known: {known}), or the path of a rig file.",
            )
        if len(gpus) + count > MAX_GPUS:
            raise UsageError(f"--rig {text}: more than {MAX_GPUS} GPUs.", next_step="Plan one machine at a time.")
        gpus += [_idle(hardware, len(gpus) + index) for index in range(count)]
    return host_with(tuple(gpus))


def host_with(gpus: tuple[Gpu, ...], *, memory_bytes: int = 64 * GIB, wsl: bool = False) -> Rig:
    """Return a rig that stands for a machine elsewhere: nothing but its GPUs and memory is known."""
    return Rig(
        cpu_model="unknown",
        cpus=8,
        memory_total_bytes=memory_bytes,
        memory_available_bytes=memory_bytes,
        kernel="unknown",
        wsl=wsl,
        gpus=gpus,
    )


def describe_cards(cards: tuple[Card, ...]) -> str:
    """Return `2x NVIDIA GeForce RTX 3090`, or `no GPU`."""
    names = [card.name for card in cards]
    return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names)) or "no GPU"


def _idle(hardware: Hardware, index: int) -> Gpu:
    return Gpu(
        index=index,
        name=hardware.title,
        uuid=f"{hardware.id}-{index}",
        memory_total_bytes=hardware.memory_total_bytes,
        memory_free_bytes=hardware.memory_total_bytes,
        compute=hardware.compute,
    )


def _card(catalog: Catalog, rig: Rig, gpu: Gpu) -> Card:
    hardware = find_hardware(catalog, gpu.name)
    total = hardware.torch_visible_bytes if hardware else round(gpu.memory_total_bytes * UNLISTED_VISIBLE_SHARE)
    used = max(0, gpu.memory_total_bytes - gpu.memory_free_bytes)
    held = CONTEXT_BYTES + (WSL_BYTES if rig.wsl and not used else 0)
    # The driver counts what it keeps for itself as used, which PyTorch's smaller total leaves out already.
    hidden = gpu.memory_total_bytes - total
    basis = (
        hardware.source if hardware else f"{UNLISTED_VISIBLE_SHARE:.0%} of the driver's total; no record of this GPU"
    )
    return Card(
        name=gpu.name,
        compute=gpu.compute or (hardware.compute if hardware else None),
        total_bytes=total,
        free_bytes=max(0, total - max(0, used - hidden) - held),
        basis=basis,
        hardware=hardware.id if hardware else None,
    )


def with_free(cards: tuple[Card, ...], free_bytes: int) -> tuple[Card, ...]:
    """Return the cards with this much free on each."""
    return tuple(replace(card, free_bytes=min(free_bytes, card.total_bytes)) for card in cards)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _tail(text: str) -> str:
    return re.sub(r"^(nvidia)?(geforce)?(rtx)?", "", _plain(text))
