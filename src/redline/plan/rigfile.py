"""A rig written by hand, or saved by redline, read from a file. Knows YAML and JSON; knows no machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redline.catalog.types import Catalog
from redline.catalog.yaml_text import YamlError, parse_yaml
from redline.errors import AccessError, UsageError
from redline.plan.cards import MAX_GPUS, find_hardware, host_with
from redline.record.codec import from_json
from redline.rig.types import Gpu, Rig
from redline.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class RigFileGpu:
    """GPUs of one kind: `name` as in `2x3090`; `free_gib` is what is free on each, all of it when left out."""

    name: str
    count: int = 1
    free_gib: float | None = None
    total_gib: float | None = None
    compute: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RigFile:
    """A rig by hand."""

    gpus: tuple[RigFileGpu, ...]
    memory_gib: float = 64.0
    wsl: bool = False


def read_rig(catalog: Catalog, path: Path) -> Rig:
    """Return the rig of a YAML or JSON file: `gpus: [{name: rtx3090, count: 2, free_gib: 22.1}]`, or a saved rig.

    Raises:
        AccessError: the file cannot be read.
        UsageError: it is not such a file, or names an unknown GPU without `total_gib`.
    """
    try:
        data, _ = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise AccessError(
            f"{path} cannot be read: {error.strerror}.", next_step="Give the path of a rig file."
        ) from None
    except (YamlError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not YAML or JSON: {error}.", next_step="See docs/planner.md for a rig file."
        ) from None
    saved = isinstance(data, dict) and "cpu_model" in data
    try:
        if saved:
            return from_json(Rig, data)
        return _rig(catalog, from_json(RigFile, data), path)
    except ValueError as error:
        raise UsageError(
            f"{path} is not a rig: {_first(error)}.", next_step="See docs/planner.md for a rig file."
        ) from None


def _rig(catalog: Catalog, file: RigFile, path: Path) -> Rig:
    gpus: list[Gpu] = []
    for entry in file.gpus:
        if not 0 <= entry.count <= MAX_GPUS or len(gpus) + entry.count > MAX_GPUS:
            raise UsageError(f"{path}: {entry.count} GPUs of one kind.", next_step=f"Write 0 to {MAX_GPUS}.")
        base = _gpu(catalog, entry, path)
        gpus += [replace(base, index=len(gpus) + i, uuid=f"{entry.name}-{len(gpus) + i}") for i in range(entry.count)]
    return host_with(tuple(gpus), memory_bytes=round(max(0.0, file.memory_gib) * GIB), wsl=file.wsl)


def _gpu(catalog: Catalog, entry: RigFileGpu, path: Path) -> Gpu:
    hardware = find_hardware(catalog, entry.name)
    if hardware is None and entry.total_gib is None:
        raise UsageError(
            f"{path}: no GPU is called {entry.name!r} here.",
            next_step="Give total_gib and compute (such as '8.6') too.",
        )
    total = (
        round(entry.total_gib * GIB) if entry.total_gib is not None else hardware.memory_total_bytes if hardware else 0
    )
    if total <= 0 or (entry.free_gib is not None and not 0 <= entry.free_gib * GIB <= total):
        raise UsageError(f"{path}: memory of {entry.name} makes no sense.", next_step="free_gib is at most the total.")
    return Gpu(
        index=0,
        name=hardware.title if hardware else entry.name,
        uuid=entry.name,
        memory_total_bytes=total,
        memory_free_bytes=total if entry.free_gib is None else round(entry.free_gib * GIB),
        compute=entry.compute or (hardware.compute if hardware else None),
    )


def _first(error: ValueError) -> str:
    errors: Any = getattr(error, "errors", None)
    if callable(errors):
        first = errors()[0]
        return f"{'.'.join(str(part) for part in first['loc']) or 'the file'}: {first['msg']}"
    return str(error)
