"""The figures of a report: what was measured, drawn so that spread and gaps show as plainly as means.

Each function takes parts of a report model and a width in pixels and returns an SVG element. Units stand on the axes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from redline.report.model import AcceptancePoint, BootFact, MemoryPoint, PositionRate
from redline.report.svg import (
    Canvas,
    Figure,
    Scale,
    fit,
    legend,
    linear,
    number,
    text_width,
    ticks,
)
from redline.report.words import clock, rate, seconds, spread
from redline.stats.interval import Estimate
from redline.units import GIB, MIB

WIDE_PX: Final = 520
NARROW_PX: Final = 312
COLOURS: Final = 6
_MAX_DOTS: Final = 200

T = TypeVar("T")
_STAGES: Final = ("planned", "checked", "fetching", "starting", "loading", "compiling", "capturing", "warming")


def thinned(values: Sequence[T]) -> Sequence[T]:
    """Return at most 200 of the values, evenly: more dots would hide each other, and swell the page."""
    return values[:: 1 + len(values) // _MAX_DOTS]


def figure(title: str, caption: str, draw: Callable[[float], str]) -> Figure:
    """Return a figure in both widths."""
    return Figure(title, caption, draw(WIDE_PX), draw(NARROW_PX))


@dataclass(frozen=True, slots=True)
class RateRow:
    """A line of a distribution: a label, a colour, the single values, and what they add up to."""

    label: str
    colour: int
    values: tuple[float, ...]
    estimate: Estimate | None


def distribution(rows: Sequence[RateRow], width: float, *, unit: str = "tok/s") -> str:
    """Draw each value as a dot, the mean as a bar across its 95 % interval; the axis begins at zero."""
    left, right, line = 4.0, width - 4.0, 46.0
    canvas = Canvas(width, 12 + line * len(rows) + 28)
    bottom = 8 + line * len(rows)
    highs = [row.estimate.high for row in rows if row.estimate and row.estimate.high is not None]
    top = max((*highs, *(value for row in rows for value in row.values), 1e-9)) * 1.02
    x = linear(0, top, left, right)
    _axis(canvas, x, ticks(0, top, 4 if width < 400 else 7), 8, bottom, unit)
    for place, row in enumerate(rows):
        y = 8 + line * place
        colour = f"c{row.colour % COLOURS}"
        said = f"{rate(row.estimate.mean)}{spread(row.estimate)}" if row.estimate else "no rate"
        canvas.text(left, y + 13, fit(row.label, right - left - text_width(said) - 12), "ink strong")
        canvas.text(right, y + 13, said, "muted", "end")
        for order, value in enumerate(thinned(row.values)):
            canvas.dot(x(value), y + 28 + (order * 7 % 5 - 2) * 1.6, 3.6, f"soft {colour}", f"{rate(value)} {unit}")
        if row.estimate is not None:
            _whisker(canvas, x, row.estimate, y + 28, colour, top)
    return canvas.render(f"Distribution in {unit}: " + "; ".join(f"{row.label}" for row in rows))


def _whisker(canvas: Canvas, x: Scale, estimate: Estimate, y: float, colour: str, top: float) -> None:
    if estimate.low is not None and estimate.high is not None:
        low, high = x(max(0.0, estimate.low)), x(min(top, estimate.high))
        canvas.line(low, y, high, y, f"stroke {colour}", 2)
        for end in (low, high):
            canvas.line(end, y - 4, end, y + 4, f"stroke {colour}", 2)
    mean = x(estimate.mean)
    canvas.line(mean, y - 9, mean, y + 9, f"stroke {colour}", 4)


def _axis(canvas: Canvas, x: Scale, at: Sequence[float], top: float, bottom: float, unit: str) -> None:
    """Vertical rules with numbers below; the unit stands by the last number."""
    for place, value in enumerate(at):
        canvas.line(x(value), top, x(value), bottom, "rule")
        canvas.tick(x(value), bottom + 16, f"{number(value)} {unit}" if place == len(at) - 1 else number(value))


def memory_over_time(points: Sequence[MemoryPoint], width: float) -> str:
    """Draw what the server held, with the phases of the run as bands. The axis does not begin at zero."""
    series = [("held", [(point.at_s, float(point.resident_bytes)) for point in points])]
    gpus = max(len(point.gpu_bytes) for point in points)
    if gpus:
        series = [
            (
                f"GPU {index}" if gpus > 1 else "GPUs together",
                [(p.at_s, float(p.gpu_bytes[index])) for p in points if len(p.gpu_bytes) > index],
            )
            for index in range(gpus)
        ]
    values = [value for _, line in series for _, value in line]
    unit, word = (GIB, "GiB") if max(values) >= 10 * GIB else (MIB, "MiB")
    low, high = min(values) / unit, max(values) / unit
    room = max(high - low, high * 0.05) * 0.2
    low, high = max(0.0, low - room), high + room
    canvas = Canvas(width, 220)
    left, right, top, floor = 46.0, width - 8, 34.0, 180.0
    x = linear(points[0].at_s, points[-1].at_s, left, right)
    y = linear(low, high, floor, top)
    _phases(canvas, points, x, top, floor)
    for value in ticks(low, high, 4):
        canvas.line(left, y(value), right, y(value), "rule")
        canvas.text(left - 6, y(value) + 4, number(value), "muted", "end")
    canvas.text(0, 12, word, "muted")
    for colour, (name, line) in enumerate(series):
        style = f"stroke c{colour % COLOURS}"
        canvas.path([(x(at), y(value / unit)) for at, value in line], style)
        for at, value in line if len(line) <= 120 else ():
            canvas.dot(x(at), y(value / unit), 2.6, f"fill c{colour % COLOURS}", f"{name} {value / unit:.1f} {word}")
    for at in ticks(points[0].at_s, points[-1].at_s, 3 if width < 400 else 6):
        canvas.tick(x(at), floor + 16, seconds(at) if at else "0 s")
    if gpus:
        legend(canvas, left, 212, right - left, [(f"c{i % COLOURS}", name) for i, (name, _) in enumerate(series)])
    return canvas.render(f"Memory held over time, {low:.0f} to {high:.0f} {word}")


def _phases(canvas: Canvas, points: Sequence[MemoryPoint], x: Scale, top: float, floor: float) -> None:
    begin = 0
    for place in range(1, len(points) + 1):
        if place < len(points) and points[place].phase == points[begin].phase:
            continue
        start, end = x(points[begin].at_s), x(points[min(place, len(points) - 1)].at_s)
        if begin and len(points) > 1:
            canvas.line(start, top - 14, start, floor, "axis dashed")
        canvas.text(start + 4, top - 6, fit(points[begin].phase, max(12.0, end - start - 6)), "muted")
        begin = place


def acceptance_by_position(rates: Sequence[PositionRate], width: float) -> str:
    """Draw the accepted share of each place in a draft, first to last."""
    canvas = Canvas(width, 200)
    left, right, top, floor = 42.0, width - 4, 12.0, 160.0
    y = linear(0, 1, floor, top)
    for share in (0, 0.25, 0.5, 0.75, 1):
        canvas.line(left, y(share), right, y(share), "rule")
        canvas.text(left - 6, y(share) + 4, f"{share:.0%}", "muted", "end")
    step = (right - left) / max(1, len(rates))
    for place, item in enumerate(rates):
        middle = left + step * (place + 0.5)
        bar = min(44.0, step * 0.7)
        title = f"place {item.position}: {item.accepted} of {item.drafts}"
        canvas.rect(middle - bar / 2, y(item.share), bar, floor - y(item.share), "fill c0", title, radius=2)
        if step >= 34:
            inside = item.share > 0.2
            label = f"{item.share:.0%}"
            canvas.text(middle, y(item.share) + (16 if inside else -5), label, "on" if inside else "muted", "middle")
        if step >= 14 or place % 4 == 0:
            canvas.text(middle, floor + 16, str(item.position), "muted", "middle")
    canvas.text((left + right) / 2, floor + 34, "place in the draft", "muted", "middle")
    return canvas.render("Accepted share by place in the draft")


def acceptance_over_time(points: Sequence[AcceptancePoint], width: float) -> str:
    """Draw tokens a drafted step against the tokens that the boot had generated: a drafter that tires slopes down."""
    classes = list(dict.fromkeys(point.prompt_class for point in points))
    canvas = Canvas(width, 228)
    left, right, top, floor = 28.0, width - 12, 14.0, 160.0
    peak = max(point.mean_length for point in points) * 1.08
    furthest = max((1, *(point.tokens_before for point in points)))
    x, y = linear(0, furthest, left + 6, right), linear(0, peak, floor, top)
    for value in ticks(0, peak, 5):
        canvas.line(left, y(value), right, y(value), "rule")
        canvas.text(left - 6, y(value) + 4, number(value), "muted", "end")
    for value in ticks(0, furthest, 3 if width < 400 else 6):
        canvas.tick(x(value), floor + 16, number(value))
    canvas.text((left + right) / 2, floor + 34, "tokens generated before", "muted", "middle")
    for point in thinned(points):
        colour = f"c{classes.index(point.prompt_class) % COLOURS}"
        words = f"{point.prompt_class}: {point.mean_length:.2f} tokens a step"
        canvas.dot(x(point.tokens_before), y(point.mean_length), 4, f"soft {colour}", words)
    legend(canvas, left, floor + 58, right - left, [(f"c{i % COLOURS}", name) for i, name in enumerate(classes)])
    return canvas.render("Tokens a drafted step over the life of the server")


def stage_timeline(boots: Sequence[BootFact], width: float) -> str:
    """Draw the stages of each boot on one time axis; a failed boot ends in a mark."""
    shown = [boot for boot in boots if boot.stages]
    names = [name for name in _STAGES if any(stage.stage == name for boot in shown for stage in boot.stages)]
    names += sorted({stage.stage for boot in shown for stage in boot.stages} - set(names))
    line = 50.0
    below = 18 * (1 + int(sum(text_width(name) + 48 for name in names) // width))
    canvas = Canvas(width, line * len(shown) + 34 + below)
    longest = max((stage.end_s for boot in shown for stage in boot.stages), default=1.0) or 1.0
    x = linear(0, longest, 0, width - 14)
    bottom = line * len(shown) + 4
    for value in ticks(0, longest, 3 if width < 400 else 6):
        canvas.line(x(value), 0, x(value), bottom, "rule")
        canvas.tick(x(value), bottom + 14, f"{number(value)} s")
    for place, boot in enumerate(shown):
        y = line * place
        end = (
            "failed" if boot.failed else f"ready in {seconds(boot.ready_s)}" if boot.ready_s is not None else boot.state
        )
        canvas.text(width, y + 14, end, "bad strong" if boot.failed else "muted", "end")
        canvas.text(0, y + 14, fit(f"{clock(boot.when)}  {boot.slug}", width - text_width(end) - 12), "ink")
        for stage in boot.stages:
            words = f"{stage.stage} {seconds(stage.end_s - stage.begin_s)}"
            colour = f"c{names.index(stage.stage) % COLOURS}"
            span = x(stage.end_s) - x(stage.begin_s)
            canvas.rect(x(stage.begin_s), y + 21, max(1.5, span - 1), 18, f"fill {colour}", words, radius=2)
            if span > text_width(words) + 8:
                canvas.text(x(stage.begin_s) + 6, y + 34, words, "on")
        if boot.failed:
            canvas.text(x(boot.stages[-1].end_s) + 3, y + 35, "✗", "bad strong")
    legend(canvas, 0, bottom + 36, width, [(f"c{i % COLOURS}", name) for i, name in enumerate(names)])
    return canvas.render("Stages of each boot in seconds")
