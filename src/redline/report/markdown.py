"""A report as Markdown to paste into an issue or a forum: the answers first, tables after, logs folded away.

Text from records is escaped for Markdown and for the HTML that Markdown lets through; it can neither form a link nor
call a person or an issue.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from redline.checks.check import CheckStatus, SkipReason
from redline.report.model import ArmVerdict, BootFact, Fact, ReportModel, StageRow, Subject
from redline.report.row import benchmark_rows, cell
from redline.report.words import clock, memory, rate, seconds, spread
from redline.stats.interval import Estimate


def render_markdown(model: ReportModel) -> str:
    """Return the report as Markdown text."""
    parts = [
        f"## redline: {cell(model.title)}\n",
        *_answers(model),
        *_stages(model),
        *_verdicts(model),
        *(part for subject in model.subjects for part in _subject(subject, alone=len(model.subjects) == 1)),
        *(["### Last boots\n", *_boots(model.boots)] if model.boots else []),
        "### Environment\n",
        _facts(model.environment),
    ]
    if model.subjects:
        parts += ["### As a table row\n", benchmark_rows(model)]
    if model.problems:
        parts += ["### What could not be read\n", _list(cell(problem) for problem in model.problems)]
    hidden = "names, addresses, paths and secrets taken out" if model.redacted else "nothing taken out: read it first"
    parts.append(f"<sub>redline {cell(model.redline_version)}, {clock(model.made_at)}; {hidden}</sub>\n")
    return "\n".join(parts)


def _answers(model: ReportModel) -> Iterable[str]:
    for answer in model.answers.in_order:
        lines = [f"**{answer.question}** {cell(answer.words)}\n"]
        lines += [f"- {cell(point)}\n" for point in answer.points]
        lines += [f"- {code(command)}\n" for command in answer.commands]
        yield "".join(lines)


def _stages(model: ReportModel) -> Iterable[str]:
    for subject, stages in groupby(model.stages, key=lambda row: row.subject):
        yield f"### Stages{f' of {cell(subject)}' if len(model.subjects) > 1 else ''}\n"
        rows = [
            (row.stage, row.state.value.replace("_", " "), row.reason, seconds(row.seconds), _recorded_by(row))
            for row in stages
        ]
        yield _table(("Stage", "Ended", "What came of it", "Took", "Run"), rows)


def _recorded_by(row: StageRow) -> str:
    return f"{row.run_id or '—'}{f', of report {row.earlier}' if row.earlier else ''}"


def _subject(subject: Subject, *, alone: bool) -> Iterable[str]:
    if not alone:
        yield f"### {cell(subject.name)}\n"
    if subject.facts:
        yield " · ".join(f"{fact.label} {cell(fact.value)}" for fact in subject.facts) + "\n"
    yield from _boots(boot for boot in subject.boots if boot.failed)
    if subject.speeds:
        yield "#### Speed\n"
        yield _speeds(subject)
    yield from _depth(subject)
    yield from _memory(subject)
    asked = [row for row in subject.checks if row.status is not CheckStatus.SKIP]
    if asked:
        yield "#### Checks\n"
        rows = [(row.title, row.status.value, row.message, seconds(row.duration_s)) for row in asked]
        yield _table(("Check", "Verdict", "What was seen", "Took"), rows)
    skipped = subject.checks_with(CheckStatus.SKIP)
    if skipped:
        yield "Not asked:\n"
        words = (
            f"{row.title}{'' if row.skip_reason is SkipReason.NOT_OFFERED else ' (unmet)'}: {row.message}"
            for row in skipped
        )
        yield _list(cell(text) for text in words)
    if subject.mixed:
        yield "The runs differ: " + cell("; ".join(subject.mixed)) + "\n"
    yield _table(
        ("Run", "What", "When", "Outcome"),
        [
            (run.run_id, run.command, clock(run.started_at), "; ".join((run.outcome, *run.problems)))
            for run in subject.runs
        ],
    )
    if subject.argv:
        yield _folded("Command line", [" ".join(subject.argv)])


def _depth(subject: Subject) -> Iterable[str]:
    """Yield the tables of long prompts and of requests side by side, where they were measured."""
    if subject.prefill:
        yield "#### Long prompts\n"
        long = [
            (f"{row.target_tokens:,}", row.regime, _estimate(row.prefill_tok_s), _estimate(row.ttft_s))
            for row in subject.prefill
        ]
        yield _table(("Prompt tokens", "Regime", "Prefill tok/s", "First token s"), long)
    if subject.streams:
        yield "#### Requests side by side\n"
        levels = [
            (str(row.streams), _estimate(row.aggregate_tok_s), _estimate(row.per_stream_tok_s), str(row.errors))
            for row in subject.streams
        ]
        yield _table(("Streams", "Together tok/s", "Each tok/s", "Errors"), levels)


def _memory(subject: Subject) -> Iterable[str]:
    """Yield the most that was seen held, with how often and in which phases it was looked at."""
    host, gpu = subject.peak_resident_bytes, subject.peak_gpu_bytes
    if host is None:
        return
    phases = ", ".join(dict.fromkeys(point.phase for point in subject.memory))
    on_gpus = f"{memory(gpu)} on GPUs, " if gpu else ""
    yield f"Memory at most {on_gpus}{memory(host)} on the host, in {len(subject.memory)} readings ({cell(phases)})\n"


def _verdicts(model: ReportModel) -> Iterable[str]:
    if model.verdicts:
        yield "### Against each other\n"
        rows = [
            (row.prompt_class, f"{row.b} against {row.a}", _ratio(row), f"{row.boots_a} and {row.boots_b}", row.verdict)
            for row in model.verdicts
        ]
        yield _table(("Class", "B against A", "B / A", "Boots", "Verdict"), rows)


def _ratio(row: ArmVerdict) -> str:
    interval = "" if row.low is None or row.high is None else f" ({row.low:.3f} to {row.high:.3f})"
    return f"{row.ratio:.3f}{interval}"


def _speeds(subject: Subject) -> str:
    rows = [
        (
            row.prompt_class,
            row.regime,
            f"{row.requests} in {row.boots}" + (f", {row.failed} failed" if row.failed else ""),
            _estimate(row.decode_tok_s),
            f"{row.ttft_s.mean:.2f}" if row.ttft_s else "—",
            _estimate(row.prefill_tok_s),
            f"{row.acceptance_length:.2f}" if row.acceptance_length else "—",
        )
        for row in subject.speeds
    ]
    headings = (
        "Class",
        "Regime",
        "Requests in boots",
        "Decode tok/s",
        "First token s",
        "Prefill tok/s",
        "Tokens a step",
    )
    return _table(headings, rows)


def _estimate(estimate: Estimate | None) -> str:
    return "—" if estimate is None else f"{rate(estimate.mean)}{spread(estimate)}"


def _boots(boots: Iterable[BootFact]) -> Iterable[str]:
    for boot in boots:
        if not boot.failed:
            yield f"- {cell(boot.slug)}: {boot.state}, {clock(boot.when)}\n"
            continue
        cause = boot.cause or "The cause is not one that redline knows."
        why = cell(f"{boot.reason or 'no reason was recorded'}. {cause}")
        yield f"**{cell(boot.slug)} did not start** ({clock(boot.when)}): {why}\n"
        if boot.evidence:
            yield f"Seen in its log: {code(boot.evidence)}\n"
        if boot.remedies:
            yield "Remedies:\n\n" + _list(cell(remedy) for remedy in boot.remedies)
        stages = ", ".join(f"{stage.stage} {seconds(stage.end_s - stage.begin_s)}" for stage in boot.stages)
        if stages:
            yield f"Stages: {cell(stages)}\n"
        if boot.log_tail:
            yield _folded(f"The last {len(boot.log_tail)} lines of its log", boot.log_tail)


def _facts(facts: Sequence[Fact]) -> str:
    return _list(f"{cell(fact.label)}: {cell(fact.value)}" for fact in facts)


def _list(items: Iterable[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cell(text) for text in line)} |\n" for line in lines)


def _folded(summary: str, lines: Sequence[str]) -> str:
    """Return lines in a fence that none of them can close, inside a fold."""
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"<details><summary>{cell(summary)}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>\n"


def code(text: str) -> str:
    """Return text as a code span, whatever back quotes it holds."""
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{padding}{' '.join(text.split())}{padding}{ticks}"
