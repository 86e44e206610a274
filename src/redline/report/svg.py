"""Writes SVG: shapes on a canvas in pixels, scales and ticks. Everything that is text is escaped here and only here.

Colours are class names (`c0` .. `c5`, `good`, `bad`, `muted`), so that one figure serves light and dark pages.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

FONT_PX: Final = 12
# Mean advance of a proportional sans-serif face, in em. Labels get that much room; no font is measured.
_ADVANCE_EM: Final = 0.56
_STYLE: Final = Path(__file__).parent / "templates" / "figure.css"

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing in two widths, for a page to show the one that fits, with its words."""

    title: str
    caption: str
    wide: str
    narrow: str


class Canvas:
    """Collects shapes. Coordinates are pixels, y downwards; numbers are written with one decimal."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str, width: float = 1) -> None:
        """A straight line."""
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{escape(style)}" '
            f'stroke-width="{width:g}"/>'
        )

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, title: str = "", radius: float = 0
    ) -> None:
        """A filled rectangle; `title` is what a pointer shows."""
        box = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}" rx="{radius:g}"'
        self._parts.append(f'<rect {box} class="{escape(style)}">{_title(title)}</rect>')

    def dot(self, x: float, y: float, radius: float, style: str, title: str = "") -> None:
        """A filled circle."""
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"'
        self._parts.append(f'<circle {place} class="{escape(style)}">{_title(title)}</circle>')

    def path(self, points: Iterable[tuple[float, float]], style: str, width: float = 2) -> None:
        """A line through points."""
        steps = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
        self._parts.append(f'<path d="{steps}" class="{escape(style)}" fill="none" stroke-width="{width:g}"/>')

    def text(self, x: float, y: float, words: str, style: str = "ink", anchor: str = "start") -> None:
        """Words on a baseline; `anchor` is start, middle or end."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{escape(style)}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def tick(self, x: float, y: float, words: str, style: str = "muted") -> None:
        """Words centred under a place, moved inwards where they would leave the canvas."""
        half = text_width(words) / 2
        anchor = "start" if x - half < 0 else "end" if x + half > self.width else "middle"
        self.text(x, y, words, style, anchor)

    def render(self, label: str) -> str:
        """Return the SVG element; `label` is what a screen reader says."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" width="{self.width:.0f}" height="{self.height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="figure" role="img" aria-label="{escape(label)}" {size}>'
            f"{''.join(self._parts)}</svg>"
        )


def standalone(svg: str) -> str:
    """Return an SVG as a file of its own, with the colours that a page would bring."""
    style = f"<style>{figure_style()}</style>"
    head, tag, rest = svg.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{tag}{style}{rest}\n'


def figure_style() -> str:
    """Return the style sheet that figures need."""
    return _STYLE.read_text(encoding="utf-8")


def text_width(words: str) -> float:
    """Return roughly how wide words are, in pixels."""
    return len(words) * FONT_PX * _ADVANCE_EM


def fit(words: str, width: float) -> str:
    """Return words cut to a width, with an ellipsis where something is left out."""
    room = max(1, int(width / (FONT_PX * _ADVANCE_EM)))
    return words if len(words) <= room else words[: max(1, room - 1)].rstrip() + "…"


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """Return the straight map of [low, high] to pixels; one value maps to the middle."""
    span = high - low
    return lambda value: (start + end) / 2 if span == 0 else start + (value - low) / span * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """Return the logarithmic map of [low, high], both positive, to pixels."""
    inner = linear(math.log(low), math.log(high), start, end)
    return lambda value: inner(math.log(value))


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers within [low, high], about as many as wanted: steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    raw = (high - low) / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((factor * power for factor in (1, 2, 5, 10) if raw <= factor * power * 1.0001), 10 * power)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return 1, 2 and 5 times powers of ten within [low, high], thinned to about as many as wanted."""
    found = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in (1, 2, 5)
        if low * 0.999 <= factor * 10.0**power <= high * 1.001
    ]
    return found[:: max(1, math.ceil(len(found) / wanted))]


def number(value: float) -> str:
    """Return a tick's label: '0', '0.5', '40', '1,500'."""
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:g}"


def legend(canvas: Canvas, x: float, y: float, width: float, entries: Sequence[tuple[str, str]]) -> float:
    """Draw (class, words) entries in lines that fit a width; return the y below them."""
    at = x
    for style, words in entries:
        room = 16 + text_width(words) + 16
        if at > x and at + room > x + width:
            at, y = x, y + 18
        canvas.rect(at, y - 9, 10, 10, f"fill {style}", radius=2)
        canvas.text(at + 16, y, words, "muted")
        at += room
    return y + 18


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>" if words else ""
