"""Figures of verdicts: the needle grid, and ratios between two arms."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redline.checks.check import CheckStatus
from redline.report.model import NeedleCell
from redline.report.svg import Canvas, fit, log_ticks, logarithmic, text_width
from redline.report.words import short_tokens

_MARKS: Final = {
    CheckStatus.PASS: ("cgood", "✓"),
    CheckStatus.WARN: ("cwarn", "!"),
    CheckStatus.FAIL: ("cbad", "✗"),
    CheckStatus.INCONCLUSIVE: ("cwarn", "?"),
    CheckStatus.ERROR: ("cwarn", "?"),
}


def needle_grid(cells: Sequence[NeedleCell], width: float) -> str:
    """Draw one cell a prompt size and place: found again, not found, or not to be told."""
    sizes = sorted({cell.context_tokens for cell in cells})
    places = sorted({cell.position_percent for cell in cells})
    left, top, gap = 44.0, 24.0, 3.0
    each = min(64.0, (width - left) / max(1, len(sizes)))
    high = min(34.0, max(22.0, each * 0.6))
    canvas = Canvas(width, top + high * len(places) + 26)
    known = {(cell.context_tokens, cell.position_percent): cell.status for cell in cells}
    canvas.text(0, 12, "place", "muted")
    for column, size in enumerate(sizes):
        if each >= 34 or column % 2 == 0:
            canvas.text(left + each * (column + 0.5), 12, short_tokens(size), "muted", "middle")
    for row, place in enumerate(places):
        y = top + high * row
        canvas.text(left - 8, y + high / 2 + 4, f"{place:.0f} %", "muted", "end")
        for column, size in enumerate(sizes):
            x = left + each * column
            status = known.get((size, place))
            colour, mark = _MARKS.get(status, ("cmuted", "")) if status else ("cmuted", "")
            style = f"fill {colour}" if status else "band"
            words = f"{size:,} tokens, {place:.0f} %: {status.value if status else 'not asked'}"
            canvas.rect(x, y, each - gap, high - gap, style, words, radius=3)
            if mark:
                canvas.text(x + (each - gap) / 2, y + high / 2 + 3, mark, "on", "middle")
    canvas.text(left, top + high * len(places) + 16, "✓ found   ✗ not found   ? no verdict", "muted")
    return canvas.render("Needle grid: prompt size by place in the prompt")


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A ratio B / A with its interval; `tone` is good, bad or muted."""

    label: str
    ratio: float
    low: float | None
    high: float | None
    words: str
    tone: str


def ratios(rows: Sequence[RatioRow], width: float, *, margin: float) -> str:
    """Draw ratios on a logarithmic axis around 1, with the band inside which arms count as equivalent."""
    values = [value for row in rows for value in (row.ratio, row.low, row.high) if value is not None and value > 0]
    low, high = min([*values, 1 / (1 + margin), 0.9]), max([*values, 1 + margin, 1 / 0.9])
    line = 46.0
    canvas = Canvas(width, line * len(rows) + 44)
    x = logarithmic(low * 0.97, high * 1.03, 6, width - 6)
    bottom = 8 + line * len(rows)
    canvas.rect(x(1 / (1 + margin)), 4, x(1 + margin) - x(1 / (1 + margin)), bottom - 4, "band")
    for value in log_ticks(low, high, 4 if width < 400 else 8):
        if abs(x(value) - x(1)) > 26:
            canvas.line(x(value), 4, x(value), bottom, "rule")
            canvas.tick(x(value), bottom + 16, f"{value:g}")
    canvas.line(x(1), 4, x(1), bottom, "axis")
    canvas.text(x(1), bottom + 16, "1", "ink strong", "middle")
    for place, row in enumerate(rows):
        y = 8 + line * place
        canvas.text(6, y + 13, fit(row.label, width - text_width(row.words) - 24), "ink strong")
        canvas.text(width - 6, y + 13, row.words, row.tone, "end")
        colour = {"good": "cgood", "bad": "cbad"}.get(row.tone, "c0")
        if row.low is not None and row.high is not None and row.low > 0:
            canvas.line(x(row.low), y + 29, x(row.high), y + 29, f"stroke {colour}", 2.5)
            for end in (row.low, row.high):
                canvas.line(x(end), y + 25, x(end), y + 33, f"stroke {colour}", 2.5)
        canvas.dot(x(row.ratio), y + 29, 5, f"fill {colour}", row.words)
    canvas.text(
        width / 2,
        bottom + 32,
        "95 % intervals; right of 1, B is better",
        "muted",
        "middle",
    )
    return canvas.render("Ratios of B to A with 95 % intervals")
