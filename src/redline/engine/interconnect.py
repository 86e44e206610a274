"""How the GPUs of a tier talk to each other, and what follows for the allocator. Knows no engine's flags."""

from dataclasses import dataclass
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.rig.types import Rig

_EXPANDABLE: Final = "expandable_segments:True"
_FIXED: Final = "expandable_segments:False"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """Whether vLLM's own all-reduce runs, and what NCCL is told; `level` None leaves NCCL its own choice."""

    custom_all_reduce: bool
    p2p_disabled: bool
    level: str | None


def interconnect(tier: ResolvedTier) -> Interconnect:
    """Return what a tier's mode means.

    `auto` takes the way that works on every machine, without reading one GPU from another: fast links are used when
    they are asked for. (NVLink brought 2 to 5 % of decode and a third of prefill; club-3090 scripts/detect_nvlink.sh.)
    """
    mode = tier.nvlink_mode.value
    fast = mode in ("force_on", "pcie_p2p") and tier.gpus > 1
    level = {"force_on": "NVL", "pcie_p2p": "PHB"}[mode] if fast and mode is not None else None
    disabled = tier.p2p_disabled.value
    return Interconnect(custom_all_reduce=fast, p2p_disabled=not fast if disabled is None else disabled, level=level)


def allocator_settings(tier: ResolvedTier, rig: Rig) -> str | None:
    """Return PyTorch's allocator settings. What the user set holds; a tier's own gives way to links and to WSL2.

    Expandable segments cannot be shared between processes, which the all-reduce needs, and fail under WSL2
    (club-3090#60, #1044).
    """
    setting = tier.cuda_allocator
    if setting.value is None or not setting.origin.startswith("rule:"):
        return setting.value
    if rig.wsl or interconnect(tier).custom_all_reduce:
        return setting.value.replace(_EXPANDABLE, _FIXED)
    return setting.value
