"""A plan as a picture: one bar a device, as text for a terminal and as SVG for a report. Knows plans, no colours of a
terminal and no screen."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from redline.plan.types import DevicePlan, FitPlan
from redline.units import GIB

BAR_CELLS: Final = 56
# What is drawn for each kind of term: a cell of text, a letter where the terminal has no such cells, a colour.
_STYLES: Final = {
    "weights": ("█", "W", "#3b6ea5"),
    "drafter": ("▓", "D", "#7a5ea8"),
    "overhead": ("▒", "O", "#b07a3c"),
    "cache": ("░", "C", "#4f9d69"),
    "spare": ("·", "s", "#a9d3b6"),
    "other": ("#", "#", "#999999"),
    "free": (" ", " ", "#e6e6e6"),
}
_KINDS: Final = {
    "weights": "weights",
    "repacked": "weights",
    "projector": "weights",
    "drafter": "drafter",
    "draft cache": "drafter",
    "draft context": "drafter",
    "cache": "cache",
    "kv cache": "cache",
    "recurrent state": "cache",
    "prompt cache": "cache",
}
_WORDS: Final = {
    "weights": "weights",
    "drafter": "drafter",
    "overhead": "overhead",
    "cache": "cache of one request",
    "spare": "rest of the pool",
    "other": "other programs and driver",
    "free": "left free",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a device's memory."""

    kind: str
    size_bytes: int


def segments(device: DevicePlan) -> tuple[Segment, ...]:
    """Return the device's memory from left to right; the last one is what stays free, never negative."""
    sizes = dict.fromkeys(_STYLES, 0)
    for term in device.terms:
        sizes[_KINDS.get(term.name, "overhead")] += term.best_bytes
    sizes["spare"] = device.spare_bytes
    if device.free_bytes is not None:
        sizes["other"] = max(0, device.total_bytes - device.free_bytes)
    used = sum(size for kind, size in sizes.items() if kind != "free")
    sizes["free"] = max(0, device.total_bytes - used)
    return tuple(Segment(kind, size) for kind, size in sizes.items() if size)


def bars(plan: FitPlan, *, cells: int = BAR_CELLS, plain: bool = False) -> tuple[str, ...]:
    """Return one line a device and a legend; `plain` draws letters for terminals without block characters."""
    if not plan.devices:
        return ()
    lines, kinds = [], dict.fromkeys(_STYLES, False)
    width = max(len(_label(index, device)) for index, device in enumerate(plan.devices))
    for index, device in enumerate(plan.devices):
        parts = segments(device)
        scale = max(device.total_bytes, sum(part.size_bytes for part in parts))
        bar = _cells(parts, scale, cells, plain=plain)
        over = " over" if device.need_bytes > device.available_bytes else ""
        lines.append(f"{_label(index, device):<{width}}  |{bar}| {device.total_bytes / GIB:.1f} GiB{over}")
        for part in parts:
            kinds[part.kind] = True
    used = [kind for kind, drawn in kinds.items() if drawn and kind != "free"]
    legend = "   ".join(f"{_STYLES[kind][1 if plain else 0]} {_WORDS[kind]}" for kind in used)
    return (*lines, f"{'':<{width}}   {legend}")


def svg(plan: FitPlan, *, width: int = 720) -> str:
    """Return a self-contained SVG: a title, one bar a device with sizes in GiB, a legend. All text is escaped."""
    left, step, top = 12, 52, 56
    body = [
        line for index, device in enumerate(plan.devices) for line in _bar(index, device, top + index * step, width)
    ]
    kinds = dict.fromkeys(part.kind for device in plan.devices for part in segments(device))
    legend, height = _legend(kinds, left, top + step * max(1, len(plan.devices)), width)
    head = (
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{_attribute(_title(plan))}" font-family="system-ui, sans-serif" font-size="12"'
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {head}>',
            "<style>text{fill:#222}@media (prefers-color-scheme: dark){text{fill:#ddd}}</style>",
            f'<text x="{left}" y="22" font-size="15" font-weight="600">{escape(_title(plan))}</text>',
            *body,
            *legend,
            "</svg>\n",
        )
    )


def _bar(index: int, device: DevicePlan, y: int, width: int, left: int = 12, height: int = 26) -> list[str]:
    inner = width - 2 * left
    parts = segments(device)
    scale = max(device.total_bytes, sum(part.size_bytes for part in parts)) or 1
    label = f"{_label(index, device)}, {device.total_bytes / GIB:.1f} GiB"
    out = [f'<text x="{left}" y="{y - 6}">{escape(label)}</text>']
    x = float(left)
    for part in parts:
        w = inner * part.size_bytes / scale
        words = f"{_WORDS[part.kind]} {part.size_bytes / GIB:.2f} GiB"
        out.append(
            f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{height}" fill="{_STYLES[part.kind][2]}">'
            f"<title>{escape(words)}</title></rect>"
        )
        x += w
    budget = left + inner * min(1.0, device.available_bytes / scale)
    out.append(f'<line x1="{budget:.1f}" y1="{y - 3}" x2="{budget:.1f}" y2="{y + height + 3}" stroke="#c0392b"/>')
    return out


def _legend(kinds: Iterable[str], left: int, y: int, width: int) -> tuple[list[str], int]:
    """Return the legend in as many rows as its words need, and the height that the picture has with it."""
    out, x = [], left
    for kind in kinds:
        needed = 28 + 7 * len(_WORDS[kind])
        if x > left and x + needed > width - left:
            x, y = left, y + 20
        out.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{_STYLES[kind][2]}"/>')
        out.append(f'<text x="{x + 16}" y="{y}">{escape(_WORDS[kind])}</text>')
        x += needed
    return out, y + 16


def _title(plan: FitPlan) -> str:
    return f"{plan.slug}: {plan.verdict.value} at {plan.context:,} tokens"


def _label(index: int, device: DevicePlan) -> str:
    return device.device if device.device == "host" else f"GPU {index} {device.device.removeprefix('NVIDIA ')}"


def _cells(parts: tuple[Segment, ...], scale: int, cells: int, *, plain: bool) -> str:
    """Share out whole cells so that they add up; the ends of segments are rounded, not their lengths."""
    text, before = "", 0
    for part in parts:
        end = round((before + part.size_bytes) / scale * cells) if scale else 0
        text += _STYLES[part.kind][1 if plain else 0] * max(0, end - len(text))
        before += part.size_bytes
    return f"{text:<{cells}}"[:cells]


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
