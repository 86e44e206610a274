"""Which processes hold how much memory on which GPU, as the driver lists them. Nothing where there is no driver."""

import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

_FIELDS: Final = "gpu_uuid,pid,used_memory"
_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class GpuHold:
    """Memory of one process on one GPU, in bytes; 0 where the driver (WSL2) does not say how much."""

    gpu_uuid: str
    pid: int
    used_bytes: int


def gpu_holds(pids: Collection[int] | None = None) -> tuple[GpuHold, ...]:
    """Return what processes hold, those of `pids` only where given; nothing without asking when there are none."""
    program = shutil.which("nvidia-smi")
    if program is None or (pids is not None and not pids):
        return ()
    try:
        done = subprocess.run(
            [program, f"--query-compute-apps={_FIELDS}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = parse_compute_apps(done.stdout)
    return tuple(item for item in found if pids is None or item.pid in pids)


def parse_compute_apps(text: str) -> tuple[GpuHold, ...]:
    """Return the rows of `nvidia-smi --query-compute-apps` CSV; lines of another shape are left out."""
    holds = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 3 and cells[0].startswith("GPU-") and cells[1].isdigit():
            used = int(cells[2]) * 2**20 if cells[2].isdigit() else 0
            holds.append(GpuHold(cells[0], int(cells[1]), used))
    return tuple(holds)
