"""Figures of one quantity against another: rates and times against the size of the prompt, or the number of streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from redline.report.figures import COLOURS, thinned
from redline.report.model import ContextPoint, StreamLevel
from redline.report.svg import Canvas, legend, linear, log_ticks, logarithmic, number, text_width, ticks
from redline.report.words import short_tokens
from redline.stats.interval import Estimate

_PANEL_PX: Final = 210
_BESIDE_PX: Final = 500


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one kind: where, how much, and between what the truth lies where that is known."""

    label: str
    colour: int
    points: tuple[tuple[float, float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """A quantity with its unit, and the curves that show it."""

    title: str
    curves: tuple[Curve, ...]


def against_context(points: Sequence[ContextPoint], width: float) -> str:
    """Draw time to first token and decode rate against the size of the prompt."""
    kinds = list(dict.fromkeys(point.series for point in points))
    panels = [
        Panel(title, tuple(_curve_of(points, kind, colour, read) for colour, kind in enumerate(kinds)))
        for title, read in (("first token, s", _ttft), ("decode, tok/s", _decode))
    ]
    label = "First token and decode rate against the size of the prompt in tokens"
    return _draw(panels, kinds, width, label, lambda value: short_tokens(round(value)))


def _ttft(point: ContextPoint) -> float | None:
    return point.ttft_s


def _decode(point: ContextPoint) -> float | None:
    return point.decode_tok_s


def _curve_of(
    points: Sequence[ContextPoint], kind: str, colour: int, read: Callable[[ContextPoint], float | None]
) -> Curve:
    found = [(point.context_tokens, read(point)) for point in points if point.series == kind]
    return Curve(kind, colour, tuple((float(x), y, None, None) for x, y in found if y is not None))


def side_by_side(levels: Sequence[StreamLevel], width: float) -> str:
    """Draw what requests at once make together and each, with 95 % intervals, against how many they are."""
    together = Curve("together", 0, _of_levels(levels, [level.aggregate_tok_s for level in levels]))
    each = Curve("each", 1, _of_levels(levels, [level.per_stream_tok_s for level in levels]))
    panels = [Panel("together, tok/s", (together,)), Panel("each, tok/s", (each,))]
    return _draw(panels, [], width, "Rates against the number of requests at once", number)


def _of_levels(
    levels: Sequence[StreamLevel], values: Sequence[Estimate | None]
) -> tuple[tuple[float, float, float | None, float | None], ...]:
    pairs = zip(levels, values, strict=True)
    return tuple((float(level.streams), found.mean, found.low, found.high) for level, found in pairs if found)


def _draw(panels: Sequence[Panel], kinds: Sequence[str], width: float, label: str, name: Callable[[float], str]) -> str:
    beside = width >= _BESIDE_PX
    each = (width - 24) / 2 if beside else width
    rows = 1 if beside else len(panels)
    lines = 1 + int(sum(text_width(kind) + 32 for kind in kinds) // width)
    canvas = Canvas(width, _PANEL_PX * rows + (18 * lines + 6 if len(kinds) > 1 else 0))
    for place, panel in enumerate(panels):
        left, top = (place * (each + 24), 0.0) if beside else (0.0, float(place * _PANEL_PX))
        _panel(canvas, left, top, each, panel, name)
    if len(kinds) > 1:
        entries = [(f"c{colour % COLOURS}", kind) for colour, kind in enumerate(kinds)]
        legend(canvas, 0, _PANEL_PX * rows + 14, width, entries)
    return canvas.render(label)


def _panel(canvas: Canvas, left: float, top: float, width: float, panel: Panel, name: Callable[[float], str]) -> None:
    canvas.text(left, top + 14, panel.title, "ink strong")
    points = [point for curve in panel.curves for point in curve.points]
    if not points:
        canvas.text(left, top + 40, "not measured", "muted")
        return
    places = sorted({point[0] for point in points})
    peak = max(max(value, high or value) for _, value, _, high in points) * 1.05
    inner, right, ceiling, floor = left + 38, left + width - 12, top + 26, top + 180
    x = logarithmic(places[0] * 0.95, places[-1] * 1.05, inner, right)
    y = linear(0, peak, floor, ceiling)
    for value in ticks(0, peak, 4):
        canvas.line(inner, y(value), right, y(value), "rule")
        canvas.text(inner - 6, y(value) + 4, number(value), "muted", "end")
    for place in places if len(places) <= 5 else log_ticks(places[0], places[-1], 5):
        canvas.tick(x(place), floor + 16, name(place))
    for curve in panel.curves:
        colour = f"c{curve.colour % COLOURS}"
        means = {place: [value for at, value, _, _ in curve.points if at == place] for place in places}
        canvas.path([(x(place), y(fmean(found))) for place, found in means.items() if found], f"stroke {colour}")
        for at, value, low, high in thinned(curve.points):
            if low is not None and high is not None:
                canvas.line(x(at), y(max(0.0, low)), x(at), y(min(peak, high)), f"stroke {colour}", 2)
            canvas.dot(x(at), y(value), 3.6, f"fill {colour}", f"{curve.label}: {value:.2f} at {name(at)}")
