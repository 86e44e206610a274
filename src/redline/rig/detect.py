"""Reads this machine. Every reading that can be missing is None or empty, never a guess."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil

from redline.rig.types import Gpu, Rig

_SMI_FIELDS: Final = "index,name,uuid,memory.total,memory.free,compute_cap,driver_version"
_SMI_TIMEOUT_S: Final = 10


def detect_rig() -> Rig:
    """Return the rig of this process. GPUs are those that `nvidia-smi` lists."""
    memory = psutil.virtual_memory()
    limit, _ = _cgroup_memory()
    gpus, driver = _nvidia_gpus()
    total = min(memory.total, limit) if limit else memory.total
    return Rig(
        cpu_model=_cpu_model(),
        cpus=usable_cpus(),
        memory_total_bytes=total,
        memory_available_bytes=available_memory_bytes(),
        kernel=platform.release(),
        wsl="microsoft" in platform.release().lower(),
        gpus=gpus,
        driver_version=driver,
    )


def available_memory_bytes() -> int:
    """Return the memory that this process' programs can still take: the machine's, or its control group's if less."""
    available = int(psutil.virtual_memory().available)
    limit, used = _cgroup_memory()
    return max(0, min(available, limit - used) if limit else available)


def usable_cpus() -> int:
    """Return the processors this process may use, a container's quota included."""
    cpus = len(os.sched_getaffinity(0))
    quota = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        cpus = min(cpus, max(1, round(int(quota[0]) / int(quota[1]))))
    return cpus


def _cgroup_memory() -> tuple[int | None, int]:
    limit = _read(Path("/sys/fs/cgroup/memory.max")).strip()
    used = _read(Path("/sys/fs/cgroup/memory.current")).strip()
    return (int(limit) if limit.isdigit() else None, int(used) if used.isdigit() else 0)


def _cpu_model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.machine()


def _nvidia_gpus() -> tuple[tuple[Gpu, ...], str | None]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return (), None
    try:
        done = subprocess.run(
            [program, f"--query-gpu={_SMI_FIELDS}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=_SMI_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return (), None
    return parse_nvidia_smi(done.stdout)


def parse_nvidia_smi(text: str) -> tuple[tuple[Gpu, ...], str | None]:
    """Return GPUs and driver version from `nvidia-smi --query-gpu` CSV; lines of another shape are left out."""
    gpus, driver = [], None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 7 or not cells[0].isdigit() or not cells[3].isdigit() or not cells[4].isdigit():
            continue
        gpus.append(
            Gpu(
                index=int(cells[0]),
                name=cells[1],
                uuid=cells[2],
                memory_total_bytes=int(cells[3]) * 2**20,
                memory_free_bytes=int(cells[4]) * 2**20,
                compute=cells[5] if cells[5].replace(".", "").isdigit() else None,
            )
        )
        driver = cells[6]
    return tuple(gpus), driver


def find_nvcc(environ: Mapping[str, str]) -> str | None:
    """Return the CUDA compiler that kernels compiled at first use would take, or None where there is none."""
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    if home:
        return shutil.which(str(Path(home) / "bin" / "nvcc"))
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
