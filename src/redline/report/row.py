"""Rows of the table in which the seeds publish benchmarks, so that everybody's numbers can stand side by side."""

import re
from typing import Final

from redline.checks.check import CheckStatus
from redline.report.model import ReportModel, Subject
from redline.report.words import count, memory, percent, rate, relative_width, short_tokens

HEADINGS: Final = ("Slug", "Drafter · KV / attn", "Ctx", "narr / code", "Rig", "Engine", "Notes")
_NONE: Final = "—"
_WORST_FIRST: Final = tuple(CheckStatus(word) for word in ("fail", "error", "inconclusive", "warn", "pass"))
# The seeds call prose narrative.
_CLASSES: Final = ("prose", "code")


def benchmark_rows(model: ReportModel) -> str:
    """Return heading and one row a subject, as a Markdown table. What was not measured is a dash."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(_row(subject) for subject in model.subjects)]
    return "".join(f"| {' | '.join(cell(text) for text in line)} |\n" for line in lines)


def cell(text: str) -> str:
    """Return text as one cell of a Markdown table: on one line, with what Markdown and HTML would read made plain."""
    escaped = re.sub(r"([\\|`*_\[\]<>])", r"\\\1", " ".join(text.split()))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("@", "@\u2060").replace("#", "#\u2060")


def _row(subject: Subject) -> tuple[str, ...]:
    facts = {fact.label: fact.value for fact in subject.facts}
    drafter = facts.get("Drafter", _NONE)
    depth = facts.get("Draft depth", "0")
    settings = {fact.label: fact.value.partition("   ")[0] for fact in subject.settings}
    attention = settings.get("attention_backend") or settings.get("attn_backend")
    kv = facts.get("KV cache", _NONE)
    return (
        subject.name,
        f"{drafter}{f' n={depth}' if depth != '0' else ''} · {kv}{f' / {attention}' if attention else ''}",
        _context(facts.get("Context", "")),
        " / ".join(_rate(subject, name) for name in _CLASSES),
        subject.rig,
        f"{subject.engine or 'endpoint'} {subject.engine_version or ''}".strip(),
        _notes(subject),
    )


def _context(words: str) -> str:
    digits = words.removesuffix(" tokens").replace(",", "")
    return short_tokens(int(digits)) if digits.isdigit() else _NONE


def _rate(subject: Subject, name: str) -> str:
    for row in subject.headline:
        if row.prompt_class == name and row.decode_tok_s is not None:
            return rate(row.decode_tok_s.mean)
    return _NONE


def _notes(subject: Subject) -> str:
    """The soak's verdict first, since a fast server that dies is no tier; then checks, and how sure the rates are."""
    soak = [row.status for row in subject.checks if row.check_id.startswith("soak")]
    worst = next((status for status in _WORST_FIRST if status in soak), None)
    notes = [f"soak {worst.value}" if worst else "soak not run"]
    asked = [row for row in subject.checks if row.status is not CheckStatus.SKIP]
    if asked:
        passed = len(subject.checks_with(CheckStatus.PASS, CheckStatus.WARN))
        notes.append(f"checks {passed}/{len(asked)}")
    rows = [row for row in subject.headline if row.prompt_class in _CLASSES]
    if rows:
        widths = [
            f"±{percent(width)}" if (width := relative_width(row.decode_tok_s)) is not None else _NONE for row in rows
        ]
        basis = (
            f"{count(rows[0].boots, 'boot')}, n={min(row.requests for row in rows)} a class, regime {rows[0].regime}"
        )
        notes.append(f"{' / '.join(widths)} ({basis})")
    peak = subject.peak_gpu_bytes or subject.peak_resident_bytes
    if peak:
        notes.append(f"peak {memory(peak)} of {'GPU' if subject.peak_gpu_bytes else 'host'} memory")
    if subject.labels:
        notes.append(f"rules set aside: {', '.join(subject.labels)}")
    return "; ".join(notes)
