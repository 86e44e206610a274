"""Plans as lines of text. Knows plans and widths; asks nothing and writes nothing."""

import sys
import textwrap
from collections.abc import Iterator

from redline.catalog.types import Catalog
from redline.ops.plan import ModelPlan, PlanReport
from redline.plan.back_solve import BackSolved
from redline.plan.picture import bars
from redline.plan.types import FitPlan, Range, Verdict
from redline.units import GIB, MIB

WIDTH = 108
LABEL_WIDTH = 9
WORDS = {
    Verdict.FIT: "fits",
    Verdict.TIGHT: "fits tightly",
    Verdict.NO: "does not fit",
    Verdict.UNKNOWN: "unknown",
}


def report_lines(report: PlanReport, catalog: Catalog) -> Iterator[str]:
    """Yield a plan in full: verdict, reasons, pool, picture, terms, trade, suggestions, what it rests on."""
    fit = report.fit
    yield f"{fit.slug} on {report.rig}"
    yield from _row("verdict", f"{fit.verdict.value}   {WORDS[fit.verdict]} at {fit.context:,} tokens")
    for reason in fit.reasons:
        yield from _row("", reason)
    yield from _pool_lines(fit)
    if report.speed:
        yield from _row("speed", f"{report.speed.describe()} prose/code, {report.speed.kind}: {report.speed.source}")
    if fit.devices:
        yield ""
        plain = "utf" not in (sys.stdout.encoding or "").lower()
        yield from (f"  {line}" for line in bars(fit, plain=plain))
        yield ""
        yield from _term_lines(fit)
    if fit.trade or fit.notes:
        yield ""
    if fit.trade:
        yield from _row("trade", fit.trade)
    for index, note in enumerate(fit.notes):
        yield from _row("note" if index == 0 else "", note)
    yield from _suggestion_lines(fit)
    yield from _basis_lines(fit, catalog)


def model_rows(found: ModelPlan) -> list[tuple[str, ...]]:
    """Return all tiers as rows of a table, headings first."""
    rows: list[tuple[str, ...]] = [("TIER", "FIT", "CONTEXT", "LARGEST", "POOL", "FULL REQUESTS", "SPEED prose/code")]
    for report in found.rows:
        fit = report.fit
        rows.append(
            (
                fit.slug,
                fit.verdict.value,
                f"{fit.context:,}",
                _range(fit.largest_range, fit.largest_context),
                _range(fit.pool_range_tokens, fit.pool_tokens),
                f"{fit.concurrency:.2f}" if fit.concurrency is not None else "-",
                report.speed.describe() if report.speed else "-",
            )
        )
    return rows


def log_lines(solved: BackSolved) -> Iterator[str]:
    """Yield what a boot log says, what follows, and how far off its plan was."""
    facts, plan = solved.facts, solved.predicted
    yield f"{plan.slug}, vLLM {facts.engine_version or 'of unknown version'}"
    said = [
        f"{facts.available_bytes / GIB:.2f} GiB for the cache" if facts.available_bytes is not None else "",
        f"{facts.pool_tokens:,} tokens" if facts.pool_tokens else "",
        f"context {facts.context:,}" if facts.context else "",
        f"split over {facts.tensor_parallel}" if facts.tensor_parallel else "",
        f"utilization {facts.gpu_memory_utilization:g}" if facts.gpu_memory_utilization else "",
        "refused to start" if facts.refused else "",
    ]
    yield from _row("log", ", ".join(word for word in said if word) or "nothing that a plan could use")
    if solved.blocks is not None:
        span = (
            f" (its bytes allow {solved.blocks_low} to {solved.blocks_high})" if solved.blocks_low is not None else ""
        )
        yield from _row(
            "blocks", f"{solved.blocks:,}{span}, {solved.block_tokens} tokens each; one request {solved.need_blocks}"
        )
    agreed = {
        True: "agrees with vLLM's own cache groups, block for block",
        False: "does not agree",
        None: "not decidable",
    }
    yield from _row("check", agreed[solved.consistent])
    for reason in solved.reasons:
        yield from _row("", reason)
    if solved.overhead_bytes is not None:
        yield from _row("overhead", f"{solved.overhead_bytes / GIB:.2f} GiB a GPU were neither weights nor cache")
    if solved.error is not None:
        what = f"{plan.pool_tokens:,} tokens" if plan.pool_tokens and facts.pool_tokens else "bytes"
        yield from _row("plan", f"{what} predicted from the settings alone: {solved.error:+.2%}")
    else:
        yield from _row("plan", "; ".join(plan.reasons) or "no prediction: the GPU is not known (--rig)")
    if solved.boot:
        yield from _row(
            "keep", "to count this boot in later plans, put its record (--json, `boot`) into your catalogue folder"
        )


def _pool_lines(fit: FitPlan) -> Iterator[str]:
    if fit.pool_tokens is None:
        if fit.largest_context is not None:
            yield from _row("context", f"largest {fit.largest_context:,}")
        return
    each = f", {fit.block_tokens} tokens and {(fit.pool_block_bytes or 0) / MIB:.2f} MiB a block"
    yield from _row(
        "pool", f"{_range(fit.pool_range_tokens, fit.pool_tokens)} tokens in {fit.pool_blocks:,} blocks{each}"
    )
    need = f"one request takes {fit.need_blocks:,}; {fit.concurrency or 0:.2f} requests at once"
    yield from _row("", need)
    yield from _row("context", f"largest {_range(fit.largest_range, fit.largest_context)}")


def _term_lines(fit: FitPlan) -> Iterator[str]:
    shown = fit.devices[:1] if len({device.terms for device in fit.devices}) == 1 else fit.devices
    width = max((len(term.name) for device in shown for term in device.terms), default=0)
    for device in shown:
        if len(shown) > 1:
            yield f"  {device.device}"
        for term in device.terms:
            span = (
                f" ({term.low_bytes / GIB:.2f} to {term.high_bytes / GIB:.2f})"
                if term.low_bytes != term.high_bytes
                else ""
            )
            yield from _row(term.name, f"{term.best_bytes / GIB:6.2f} GiB{span}   {term.basis}", width)
        if device.spare_bytes:
            yield from _row("spare", f"{device.spare_bytes / GIB:6.2f} GiB   the rest of the pool", width)


def _suggestion_lines(fit: FitPlan) -> Iterator[str]:
    if not fit.suggestions:
        return
    yield ""
    for index, item in enumerate(fit.suggestions):
        largest = f", largest context {item.largest_context:,}" if item.largest_context else ""
        yield from _row("try" if index == 0 else "", f"{item.change}   {item.verdict.value}{largest}: {item.cost}")


def _basis_lines(fit: FitPlan, catalog: Catalog) -> Iterator[str]:
    if fit.rules is None and not fit.boots:
        return
    yield ""
    words = [f"allocator {fit.rules}"] if fit.rules else []
    if fit.boots:
        near = ", ".join(fit.boots[:3]) + (f" and {len(fit.boots) - 3} more" if len(fit.boots) > 3 else "")
        words.append(f"nearest of {len(catalog.boots)} recorded boots: {near}")
    yield from _row("basis", "; ".join(words))


def _range(bounds: Range | None, best: int | None) -> str:
    if best is None:
        return "-"
    if bounds is None or bounds.low == bounds.high:
        return f"{best:,}"
    return f"{best:,} ({bounds.low:,} to {bounds.high:,})"


def _row(label: str, text: str, label_width: int = LABEL_WIDTH) -> Iterator[str]:
    indent = 3 + max(label_width, LABEL_WIDTH)
    lines = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False) or [""]
    yield f"  {label:<{indent - 3}} {lines[0]}".rstrip()
    for line in lines[1:]:
        yield " " * indent + line
