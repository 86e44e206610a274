"""One self-contained HTML page: no script, nothing loaded, every text escaped by the template engine.

The page shows what the model holds; what it works out here is layout only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from redline.checks.check import CheckStatus
from redline.checks.stages import StageState
from redline.report import words as say
from redline.report.answers import short_names
from redline.report.drawings import drawings_of, overview_of, speed_of, timeline_of
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

_STAGE_TONES: Final[Mapping[StageState, str]] = {
    StageState.PASSED: "good",
    StageState.FAILED: "bad",
    StageState.OPEN: "warn",
    StageState.BROKEN: "bad",
    StageState.INTERRUPTED: "warn",
    StageState.NOT_RUN: "muted",
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
            style=page_style(),
            pills=_pills(model),
            views=views,
            classes=classes,
            overview=overview_of([(view.short, view.subject) for view in views], classes),
            timeline=timeline_of(model.boots),
            stage_tones=_STAGE_TONES,
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
        speed=speed_of(subject),
        figures=tuple(drawings_of(subject)),
        facts=(rig, engine, *subject.facts),
    )


def _pills(model: ReportModel) -> list[Pill]:
    """The few words that a reader takes away when they read nothing else."""
    pills = []
    asked = [row for subject in model.subjects for row in subject.checks if row.status is not CheckStatus.SKIP]
    if asked:
        passed = sum(1 for row in asked if row.status in (CheckStatus.PASS, CheckStatus.WARN))
        failing = any(row.status in (CheckStatus.FAIL, CheckStatus.ERROR) for row in asked)
        tone = Tone.GOOD if passed == len(asked) else Tone.BAD if failing else Tone.WARN
        pills.append(Pill(f"{passed} of {len(asked)} checks passed", tone))
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


@lru_cache(maxsize=1)
def page_style() -> Any:
    """Return the style sheet of pages, ready to stand in one."""
    from markupsafe import Markup

    return Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8") + figure_style())  # noqa: S704 -- own files


def template(name: str) -> Any:
    """Return a template; in every one of them texts are escaped and a missing value is an error."""
    return _environment().get_template(name)


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
