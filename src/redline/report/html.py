"""One self-contained HTML page: no script, nothing loaded, every text escaped by the template engine.

The page shows what the model holds; what it works out here is layout only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from redline.checks.check import CheckStatus
from redline.report import figures, grids
from redline.report import words as say
from redline.report.answers import short_names
from redline.report.model import ClassSpeed, Fact, ReportModel, Subject, Tone
from redline.report.svg import Figure, figure_style
from redline.stats.compare import MIN_BOOTS

_TEMPLATES: Final = Path(__file__).parent / "templates"
_MARKS: Final[Mapping[CheckStatus, tuple[str, str]]] = {
    CheckStatus.PASS: ("✓", "good"),
    CheckStatus.WARN: ("!", "warn"),
    CheckStatus.FAIL: ("✗", "bad"),
    CheckStatus.SKIP: ("○", "muted"),
    CheckStatus.INCONCLUSIVE: ("?", "warn"),
    CheckStatus.ERROR: ("?", "warn"),
}


@dataclass(frozen=True, slots=True)
class Pill:
    """A few words under the title."""

    words: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A subject with what its section needs beside it."""

    subject: Subject
    short: str
    checks: str
    ready: str
    held: str
    rates: Mapping[str, str]
    speeds: tuple[ClassSpeed, ...]
    speed: Figure | None
    figures: tuple[Figure, ...]
    facts: tuple[Fact, ...]


def render_html(model: ReportModel) -> str:
    """Return the page as text."""
    views = [_view(subject, short) for subject, short in zip(model.subjects, short_names(model.subjects), strict=True)]
    classes = list(dict.fromkeys(row.prompt_class for subject in model.subjects for row in subject.headline))
    page: str = (
        _environment()
        .get_template("report.html.j2")
        .render(
            model=model,
            style=_style(),
            pills=_pills(model),
            views=views,
            classes=classes,
            overview=_overview(views, classes),
            timeline=_timeline(model.boots),
        )
    )
    return page


def _view(subject: Subject, short: str) -> View:
    asked = [row for row in subject.checks if row.status is not CheckStatus.SKIP]
    passed = subject.checks_with(CheckStatus.PASS, CheckStatus.WARN)
    ready = [boot.ready_s for boot in subject.boots if boot.ready_s is not None]
    held = [boot.memory_bytes for boot in subject.boots if boot.memory_bytes]
    rig = Fact("Rig", subject.rig)
    engine = Fact("Engine", f"{subject.engine or 'not started by redline'} {subject.engine_version or ''}".strip())
    return View(
        subject=subject,
        short=short,
        checks=f"{len(passed)} of {len(asked)}" if asked else "—",
        ready=say.seconds(max(ready)) if ready else "—",
        held=say.memory(max(held)) if held else "—",
        rates={row.prompt_class: say.rate(row.decode_tok_s.mean) for row in subject.headline if row.decode_tok_s},
        speeds=tuple(sorted(subject.speeds, key=lambda row: row.regime != subject.main_regime)),
        speed=_speed(subject),
        figures=tuple(_figures(subject)),
        facts=(rig, engine, *subject.facts),
    )


def _pills(model: ReportModel) -> list[Pill]:
    """The few words that a reader takes away when they read nothing else."""
    pills = []
    asked = [row for subject in model.subjects for row in subject.checks if row.status is not CheckStatus.SKIP]
    if asked:
        passed = sum(1 for row in asked if row.status in (CheckStatus.PASS, CheckStatus.WARN))
        pills.append(Pill(f"{passed} of {len(asked)} checks passed", Tone.GOOD if passed == len(asked) else Tone.BAD))
    failed = [boot for subject in model.subjects for boot in subject.boots if boot.failed]
    failed += [boot for boot in model.boots if boot.failed]
    if failed:
        pills.append(Pill(f"{say.count(len(failed), 'boot')} failed", Tone.BAD))
    if len(model.subjects) == 1:
        pills += [
            Pill(f"{row.prompt_class} {say.rate(row.decode_tok_s.mean)} tok/s", Tone.PLAIN)
            for row in model.subjects[0].headline
            if row.decode_tok_s is not None
        ]
    measured = [row.boots for subject in model.subjects for row in subject.headline]
    if measured:
        boots = min(measured)
        each = " each" if len(model.subjects) > 1 else ""
        pills.append(Pill(f"{say.count(boots, 'boot')}{each}", Tone.PLAIN if boots >= MIN_BOOTS else Tone.WARN))
    return pills


def _speed(subject: Subject) -> Figure | None:
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


def _overview(views: Sequence[View], classes: Sequence[str]) -> Figure | None:
    rows = [
        figures.RateRow(
            f"{name}, {view.short}",
            classes.index(name),
            tuple(point.decode_tok_s for point in row.samples if point.decode_tok_s is not None),
            row.decode_tok_s,
        )
        for name in classes
        for view in views
        for row in view.subject.headline
        if row.prompt_class == name
    ]
    if len(rows) < 2:
        return None
    caption = "Each dot is one request; the bar is the mean, the line its 95 % interval."
    return figures.figure("Decode rate, tier by tier", caption, lambda width: figures.distribution(rows, width))


def _timeline(boots: Sequence[Any]) -> Figure | None:
    if not any(boot.stages for boot in boots):
        return None
    caption = "From the moment the server was created; stages as its log showed them."
    return figures.figure("Start", caption, lambda width: figures.stage_timeline(boots, width))


def _figures(subject: Subject) -> list[Figure]:
    """Return the figures whose records exist, in the order of a server's life."""
    found: list[Figure | None] = [_timeline(subject.boots)]
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
                "First token and decode at depth", caption, lambda w: figures.against_context(subject.context, w)
            )
        )
    if subject.needles:
        caption = "Facts hidden at a place in prompts of a size, and asked for again."
        found.append(figures.figure("Needles", caption, lambda w: grids.needle_grid(subject.needles, w)))
    return [figure for figure in found if figure is not None]


@lru_cache(maxsize=1)
def _style() -> Any:
    from markupsafe import Markup

    return Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8") + figure_style())  # noqa: S704 -- own files


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shows = {"rate": say.rate, "fixed": lambda value: f"{value:.2f}", "seconds": say.seconds}
    environment.filters |= {
        "rate": say.rate,
        "seconds": say.seconds,
        "clock": say.clock,
        "count": say.count,
        "apply": lambda value, name: shows[name](value),
        "mark": lambda status: _MARKS[status][0],
        "tone": lambda status: _MARKS[status][1],
        "svg": Markup,  # figures are written by `report.svg`, which escapes every text it is given
    }
    return environment
