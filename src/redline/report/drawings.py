"""Which figures a report shows: each with its title and the sentence under it, and only where its records exist."""

from collections.abc import Sequence

from redline.report import curves, figures, grids
from redline.report.model import BootFact, Subject
from redline.report.svg import Figure


def speed_of(subject: Subject) -> Figure | None:
    """Return the distribution of decode rates by class, or None without a rate."""
    rows = [
        figures.RateRow(
            row.prompt_class,
            number,
            tuple(point.decode_tok_s for point in row.samples if point.decode_tok_s is not None),
            row.decode_tok_s,
        )
        for number, row in enumerate(subject.headline)
    ]
    if not rows:
        return None
    caption = "Each dot is one request; the bar is the mean, the line its 95 % interval."
    return figures.figure("Decode rate by class", caption, lambda width: figures.distribution(rows, width))


def overview_of(subjects: Sequence[tuple[str, Subject]], classes: Sequence[str]) -> Figure | None:
    """Return the distributions of several subjects, class by class, or None where there is nothing to compare."""
    rows = [
        figures.RateRow(
            f"{name}, {short}",
            classes.index(name),
            tuple(point.decode_tok_s for point in row.samples if point.decode_tok_s is not None),
            row.decode_tok_s,
        )
        for name in classes
        for short, subject in subjects
        for row in subject.headline
        if row.prompt_class == name
    ]
    if len(rows) < 2:
        return None
    caption = "Each dot is one request; the bar is the mean, the line its 95 % interval."
    return figures.figure("Decode rate, tier by tier", caption, lambda width: figures.distribution(rows, width))


def timeline_of(boots: Sequence[BootFact]) -> Figure | None:
    """Return the stages of boots, or None where no stage was recorded."""
    if not any(boot.stages for boot in boots):
        return None
    caption = "From the moment the server was created; stages as its log showed them."
    return figures.figure("Start", caption, lambda width: figures.stage_timeline(boots, width))


def drawings_of(subject: Subject) -> list[Figure]:
    """Return the figures whose records exist, in the order of a server's life."""
    found: list[Figure | None] = [timeline_of(subject.boots)]
    if len(subject.memory) > 1:
        first, last = subject.memory[0].resident_bytes, subject.memory[-1].resident_bytes
        growth = (last - first) / 2**20
        caption = f"Read between requests; {growth:+.1f} MiB from first to last. The axis does not begin at zero."
        found.append(figures.figure("Memory over time", caption, lambda w: figures.memory_over_time(subject.memory, w)))
    drafting = subject.drafting
    if drafting is not None and drafting.by_position:
        caption = (
            f"{drafting.accepted} of {drafting.drafted} drafted tokens were accepted; later places need all before."
        )
        found.append(
            figures.figure(
                "Acceptance by place in the draft",
                caption,
                lambda w: figures.acceptance_by_position(drafting.by_position, w),
            )
        )
    if drafting is not None and len(drafting.over_time) > 1:
        caption = "Tokens that one drafted step yields, the target's own included. A drafter that tires slopes down."
        found.append(
            figures.figure(
                "Acceptance over time", caption, lambda w: figures.acceptance_over_time(drafting.over_time, w)
            )
        )
    if subject.context:
        caption = "Against the size of the prompt, in tokens."
        found.append(
            figures.figure(
                "First token and decode at depth", caption, lambda w: curves.against_context(subject.context, w)
            )
        )
    if subject.streams:
        caption = "Together on the window in which all of them decode, and each; lines are 95 % intervals."
        found.append(
            figures.figure("Requests side by side", caption, lambda w: curves.side_by_side(subject.streams, w))
        )
    if subject.needles:
        caption = "Facts hidden at a place in prompts of a size, and asked for again."
        found.append(figures.figure("Needles", caption, lambda w: grids.needle_grid(subject.needles, w)))
    return [figure for figure in found if figure is not None]
