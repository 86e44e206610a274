"""Sizes, counts and durations as people read them. Knows no room and holds no state."""

from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3
NS_PER_S: Final = 1_000_000_000


def format_bytes(size_bytes: int) -> str:
    """Return a size in decimal units, as disks and downloads are sold: 77571136 -> '78 MB'."""
    value, units = float(size_bytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 9.95 and units[0] != "B" else f"{value:.0f} {units[0]}"


def format_gib(size_bytes: int) -> str:
    """Return a memory size in binary units, as drivers and engines report it: '0.4 GiB'."""
    return f"{size_bytes / GIB:.1f} GiB"


def format_seconds(seconds: float) -> str:
    """Return a duration a person takes in at a glance: '0.9 s', '42 s', '3 min 20 s', '2 h 5 min', '3 d 4 h'."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
