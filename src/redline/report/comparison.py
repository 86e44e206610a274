"""A comparison as text, Markdown and a figure: ratios with intervals, and what the two arms differ in."""

from collections.abc import Sequence
from typing import Final

from redline.bench.boots import LESS_IS_BETTER
from redline.bench.compare import Basis, Comparison, Ratio
from redline.record.differences import Difference, Respect
from redline.report.figures import figure
from redline.report.grids import RatioRow, ratios
from redline.report.row import cell
from redline.report.svg import Figure
from redline.report.words import count, join, rate
from redline.stats.compare import Verdict

_NAMES: Final = {"decode_tok_s": "decode tok/s", "prefill_tok_s": "prefill tok/s", "ttft_s": "first token s"}
_TONES: Final = {Verdict.FASTER: "good", Verdict.SLOWER: "bad"}
HEADINGS: Final = ("MEASURED", "CLASS", "A", "B", "B / A", "INTERVAL SPANS", "VERDICT")


def arm_words(comparison: Comparison) -> tuple[str, str]:
    """Return one line an arm: what it is, and how much it rests on."""
    arms = (comparison.a, comparison.b)
    first, second = (
        f"{arm.name}   {count(arm.boots, 'boot')}, {count(arm.requests, 'request')} in {count(len(arm.run_ids), 'run')}"
        for arm in arms
    )
    return first, second


def difference_words(comparison: Comparison) -> str:
    """Return what differs, by respect: 'tier: drafter none -> lookup, spec_n 0 -> 7'; the command line is left out."""
    shown: dict[Respect, list[str]] = {}
    for item in comparison.differences:
        if item.respect is not Respect.COMMAND_LINE:
            shown.setdefault(item.respect, []).append(_one(item))
    return "; ".join(f"{respect.value}: {', '.join(items)}" for respect, items in shown.items()) or comparison.about


def _one(item: Difference) -> str:
    sides = [(side or "-")[:12] if item.field.startswith("file ") else side or "-" for side in (item.a, item.b)]
    return f"{item.field} {sides[0]} -> {sides[1]}"


def table_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the cells of the table, one row a metric and class; the regime stands by it where there are several."""
    several = len({row.regime for row in comparison.rows}) > 1
    return [
        (
            _NAMES.get(row.metric, row.metric),
            f"{row.prompt_class}, {row.regime}" if several else row.prompt_class,
            _value(row.mean_a),
            _value(row.mean_b),
            ratio_words(row),
            row.basis.value if row.basis is not Basis.NONE else "-",
            row.verdict.value,
        )
        for row in comparison.rows
    ]


def _value(value: float | None) -> str:
    return "-" if value is None else rate(value)


def ratio_words(row: Ratio) -> str:
    """Return a ratio with its interval: '1.70 (1.62 to 1.79)'."""
    if row.ratio is None:
        return "-"
    if row.ratio.low is None or row.ratio.high is None:
        return f"{row.ratio.mean:.2f}"
    return f"{row.ratio.mean:.2f} ({row.ratio.low:.2f} to {row.ratio.high:.2f})"


def verdict_words(comparison: Comparison) -> str:
    """Return the verdict as a sentence about B."""
    if comparison.verdict is Verdict.UNDETERMINED:
        return f"Undetermined: {comparison.why}."
    return f"B is {comparison.verdict.value}: {comparison.why}."


def comparison_markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown to paste."""
    a, b = arm_words(comparison)
    lines: Sequence[Sequence[str]] = [HEADINGS, ["---"] * len(HEADINGS), *table_rows(comparison)]
    table = "".join(f"| {' | '.join(cell(text) for text in line)} |\n" for line in lines)
    return (
        f"## {cell(comparison.b.name)} against {cell(comparison.a.name)}\n\n**{cell(verdict_words(comparison))}**\n\n"
        f"- A: {cell(a)}\n- B: {cell(b)}\n- Differs in {cell(difference_words(comparison))}\n"
        f"- Equivalent means within {comparison.margin:.0%}\n\n{table}"
    )


def comparison_figure(comparison: Comparison) -> Figure | None:
    """Return the ratios as a figure, or None where there is none; times are turned so that right is always better."""
    rows = [_ratio_row(row) for row in comparison.rows if row.ratio is not None and row.ratio.mean > 0]
    if not rows:
        return None
    metrics = join(dict.fromkeys(_NAMES.get(row.metric, row.metric) for row in comparison.rows if row.ratio))
    caption = f"{comparison.b.name} against {comparison.a.name}: {metrics}. Right of 1 B is better."
    return figure("Ratios", caption, lambda width: ratios(rows, width, margin=comparison.margin))


def _ratio_row(row: Ratio) -> RatioRow:
    found = row.ratio
    assert found is not None
    mean, low, high = found.mean, found.low, found.high
    if row.metric in LESS_IS_BETTER:
        mean, low, high = 1 / mean, None if high is None else 1 / high, None if low is None else 1 / low
    return RatioRow(
        label=f"{_NAMES.get(row.metric, row.metric)}, {row.prompt_class}",
        ratio=mean,
        low=low,
        high=high,
        words=f"{mean:.2f}  {row.verdict.value}",
        tone=_TONES.get(row.verdict, "muted"),
    )
