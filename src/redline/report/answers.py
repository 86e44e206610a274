"""The six answers of a report's first screen: what ran, on what, what was proved, what not, how sure, what next.

Every sentence is worked out from the model's own parts. What was not looked at is said as plainly as what was.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from redline.checks.check import CheckStatus, SkipReason
from redline.checks.stages import SETTLED
from redline.report.model import Answer, Answers, BootFact, ClassSpeed, StageRow, Subject, Tone
from redline.report.next_steps import WIDE, what_next
from redline.report.words import capital, clock, count, day, join, most, percent, rate, relative_width, seconds, spread
from redline.stats.compare import MIN_BOOTS

_PASSED: Final = (CheckStatus.PASS, CheckStatus.WARN)
_UNASKED: Final = (CheckStatus.INCONCLUSIVE, CheckStatus.ERROR)


def short_names(subjects: Sequence[Subject]) -> tuple[str, ...]:
    """Return names without what all share: `fast` and `superfast` of two slugs; whole ones where they repeat."""
    names = [subject.name for subject in subjects]
    if len(names) < 2:
        return tuple(names)
    shared = 0
    while all(len(name) > shared and name[shared] == names[0][shared] for name in names):
        shared += 1
    cut = max(names[0].rfind("/", 0, shared), names[0].rfind("-", 0, shared)) + 1
    short = [name[cut:] for name in names]
    return tuple(short if len(set(short)) == len(short) and all(short) else names)


def title_of(subjects: Sequence[Subject]) -> str:
    """Return what a report is about: one name, or what the names share and how they differ."""
    short = short_names(subjects)
    if len(subjects) < 2:
        return short[0] if short else "no run"
    shared = subjects[0].name.removesuffix(short[0]).rstrip("-/")
    return f"{shared}: {join(short)}" if shared else join(short)


def answer(
    subjects: Sequence[Subject],
    boots: Sequence[BootFact],
    rig: str,
    program: str = "redline",
    stages: Sequence[StageRow] = (),
) -> Answers:
    """Return the six answers about subjects; without any, about the rig and the boots that were seen on it."""
    names = short_names(subjects)
    pairs = list(zip(names, subjects, strict=True))
    return Answers(
        what_ran=_what_ran(subjects, boots),
        on_what=_on_what(subjects, rig),
        proved=_proved(pairs),
        not_proved=_with_stages(_not_proved(pairs, boots), stages),
        how_sure=_how_sure(pairs),
        what_next=what_next(subjects, boots, program, stages),
    )


def _what_ran(subjects: Sequence[Subject], boots: Sequence[BootFact]) -> Answer:
    question = "What ran"
    if not subjects:
        if not boots:
            return Answer(question=question, words="Nothing: this report describes the rig alone.")
        ready = sum(1 for boot in boots if not boot.failed)
        which = "The last boot" if len(boots) == 1 else f"Of the last {len(boots)} boots"
        ended = f"{ready} became ready, {len(boots) - ready} did not" if len(boots) > 1 else _ending(boots[0])
        return Answer(
            question=question,
            words=f"Nothing was measured for this report. {which} on this rig{':' if len(boots) > 1 else ''} {ended}.",
            points=tuple(_boot_words(boot) for boot in boots),
        )
    runs = [run for subject in subjects for run in subject.runs]
    when = join(dict.fromkeys(day(run.started_at) for run in sorted(runs, key=lambda run: run.started_at)))
    tail = f" {count(len(runs), 'run')}, {when}."
    if len(subjects) == 1:
        return Answer(question=question, words=f"{subjects[0].name} {_deeds(subjects[0])}.{tail}")
    names = short_names(subjects)
    what = count(len(subjects), "tier" if all(subject.slug for subject in subjects) else "server")
    return Answer(
        question=question,
        words=f"{what}: {join(subject.name for subject in subjects)}.{tail}",
        points=tuple(f"{name} {_deeds(subject)}." for name, subject in zip(names, subjects, strict=True)),
    )


def _ending(boot: BootFact) -> str:
    return "did not become ready" if boot.failed else "became ready"


def _boot_words(boot: BootFact) -> str:
    if boot.failed:
        return f"{boot.slug} failed on {clock(boot.when)}: {boot.reason or 'no reason recorded'}"
    ready = f" after {seconds(boot.ready_s)}" if boot.ready_s is not None else ""
    return f"{boot.slug} was ready{ready} on {clock(boot.when)}"


def _deeds(subject: Subject) -> str:
    """Return what was done with a subject: 'was started (ready in 5.7 s), asked 8 checks and measured with 12 ...'."""
    deeds = []
    ready = [boot.ready_s for boot in subject.boots if boot.ready_s is not None]
    failed = sum(1 for boot in subject.boots if boot.failed)
    if ready:
        times = "" if len(ready) == 1 else f" {len(ready)} times"
        deeds.append(f"was started{times} (ready in {seconds(sorted(ready)[len(ready) // 2])})")
    if failed:
        deeds.append(f"did not start in {count(failed, 'attempt')}")
    if subject.checks:
        deeds.append(f"was asked {count(len(subject.checks), 'check')}")
    requests = sum(speed.requests for speed in subject.speeds)
    if requests:
        classes = join(dict.fromkeys(speed.prompt_class for speed in subject.speeds))
        deeds.append(f"was measured with {count(requests, 'request')} ({classes})")
    return join(deeds) or "was named, and nothing was recorded of it"


def _on_what(subjects: Sequence[Subject], rig: str) -> Answer:
    question = "On what"
    if not subjects:
        return Answer(question=question, words=f"{rig}.")
    rigs = list(dict.fromkeys(subject.rig for subject in subjects))
    engines = list(
        dict.fromkeys(
            f"{subject.engine or 'an engine that redline did not start'} {subject.engine_version or ''}".strip()
            for subject in subjects
        )
    )
    return Answer(question=question, words=f"{'; '.join(rigs)}. Engine: {join(engines)}.")


def _proved(pairs: Sequence[tuple[str, Subject]]) -> Answer:
    question = "What was proved"
    points = [(name, text) for name, subject in pairs if (text := _proof(subject, brief=len(pairs) > 1))]
    if not points:
        return Answer(question=question, words="Nothing: no check passed and nothing was measured.", tone=Tone.PLAIN)
    if len(pairs) == 1:
        return Answer(question=question, words=points[0][1], tone=Tone.GOOD)
    asked = [row for _, subject in pairs for row in subject.checks if row.status is not CheckStatus.SKIP]
    passed = sum(1 for row in asked if row.status in _PASSED)
    measured = sum(1 for _, subject in pairs if subject.headline)
    checks = f"{passed} of {len(asked)} applicable checks passed" if asked else "No check was asked"
    return Answer(
        question=question,
        words=f"{checks}; {measured} of {len(pairs)} were measured.",
        tone=Tone.GOOD,
        points=tuple(f"{name}: {sentence}" for name, sentence in points),
    )


def _proof(subject: Subject, *, brief: bool) -> str:
    """Return what a subject has shown, in sentences; beside other subjects, in one line."""
    passed = subject.checks_with(*_PASSED)
    asked = [row for row in subject.checks if row.status is not CheckStatus.SKIP]
    rates = [(row.prompt_class, row.decode_tok_s) for row in subject.headline if row.decode_tok_s is not None]
    if brief:
        checks = [f"{len(passed)} of {len(asked)} checks"] if asked else []
        numbers = [f"{name} {rate(found.mean)}" for name, found in rates]
        return "; ".join([*checks, *([f"{', '.join(numbers)} tok/s"] if numbers else [])])
    sentences = []
    if passed:
        titles = most([row.title for row in passed], 6)
        sentences.append(f"{len(passed)} of {len(asked)} applicable checks passed: {titles}.")
    if rates:
        words = [f"{name} at {rate(found.mean)} tok/s{spread(found)}" for name, found in rates]
        sentences.append(f"It decodes {join(words)}.")
    first = [row.ttft_s.mean for row in subject.headline if row.ttft_s is not None]
    if first:
        low, high = seconds(min(first)), seconds(max(first))
        sentences.append(f"First token after {low if low == high else f'{low} to {high}'}.")
    sentences += [f"Soaked: {statement}." for statement in subject.endurance]
    if subject.drafting is not None:
        sentences.append(f"A drafted step yields {subject.drafting.mean_length:.1f} tokens.")
    return " ".join(sentences)


def _not_proved(pairs: Sequence[tuple[str, Subject]], boots: Sequence[BootFact]) -> Answer:
    question = "What was not"
    if not pairs:
        failed = [boot for boot in boots if boot.failed]
        if failed:
            causes = join(dict.fromkeys((boot.cause or "of no known cause").rstrip(".") for boot in failed))
            return Answer(
                question=question,
                words=f"{count(len(failed), 'boot')} never became a server: {causes}. Nothing else was looked at.",
                tone=Tone.BAD,
            )
        return Answer(question=question, words="Everything: no check and no benchmark is part of this report.")
    gaps = [(name, *_gaps(subject)) for name, subject in pairs]
    tone = Tone.BAD if any(bad for _, bad, _ in gaps) else Tone.WARN if any(g for _, _, g in gaps) else Tone.PLAIN
    if len(pairs) == 1:
        _, bad, rest = gaps[0]
        return Answer(question=question, words=" ".join((*bad, *rest)) or "Nothing is missing.", tone=tone)
    failing = [f"{row.title} ({name})" for name, subject in pairs for row in subject.checks_with(CheckStatus.FAIL)]
    failing += [f"a boot of {name}" for name, subject in pairs for boot in subject.boots if boot.failed]
    shared = [text for text in gaps[0][2] if all(text in rest for _, _, rest in gaps)]
    words = [f"Failed: {join(failing)}." if failing else "Nothing failed.", *shared]
    own = [(name, [*bad, *(text for text in rest if text not in shared)]) for name, bad, rest in gaps]
    points = tuple(f"{name}: {' '.join(texts)}" for name, texts in own if texts)
    return Answer(question=question, words=" ".join(words), tone=tone, points=points)


def _with_stages(found: Answer, stages: Sequence[StageRow]) -> Answer:
    """Add the stages of a whole report that have no verdict: what they would have shown is not known."""
    open_ends = [row for row in stages if row.state not in SETTLED]
    if not open_ends:
        return found
    reasons = {
        reason: [row.stage for row in open_ends if row.reason == reason]
        for reason in dict.fromkeys(row.reason for row in open_ends)
    }
    words = "; ".join(f"{join(names)} ({reason.rstrip('.')})" for reason, names in reasons.items())
    text = f"{'Stage' if len(open_ends) == 1 else 'Stages'} without a verdict: {words}. {found.words}"
    return replace(found, words=text, tone=Tone.BAD if found.tone is Tone.BAD else Tone.WARN)


def _gaps(subject: Subject) -> tuple[list[str], list[str]]:
    """Return sentences about what failed, and about what was not asked or not looked at."""
    bad = [f"{capital(row.title)} failed: {row.message}." for row in subject.checks_with(CheckStatus.FAIL)]
    bad += [
        f"A boot failed: {(boot.cause or boot.reason or 'unknown').rstrip('.')}."
        for boot in subject.boots
        if boot.failed
    ]
    rest = [f"{capital(row.title)}: {row.message}." for row in subject.checks_with(*_UNASKED)]
    skipped = subject.checks_with(CheckStatus.SKIP)
    unmet = [row.title for row in skipped if row.skip_reason is SkipReason.UNMET]
    absent = [row.title for row in skipped if row.skip_reason is not SkipReason.UNMET]
    if unmet:
        rest.append(f"Not asked although it should have been: {join(dict.fromkeys(unmet))}.")
    if absent:
        rest.append(f"Not offered: {join(dict.fromkeys(absent))}.")
    missing = _missing(subject)
    if missing:
        rest.append(f"Not looked at: {join(missing)}.")
    lost = sum(row.failed for row in subject.speeds)
    if lost:
        rest.append(f"{count(lost, 'request')} gave no rate.")
    cut = [run.run_id for run in subject.runs if run.outcome not in ("complete", "failed")]
    if cut:
        rest.append(f"{count(len(cut), 'run')} did not reach the end: {join(cut)}.")
    return bad, rest


def _missing(subject: Subject) -> list[str]:
    groups = {row.check_id.partition(".")[0] for row in subject.checks}
    areas = (
        ("function", bool(subject.checks)),
        ("speed", bool(subject.speeds)),
        ("long context", bool(subject.needles or subject.context) or "ctx" in groups),
        ("endurance", bool(subject.endurance) or "soak" in groups),
        ("quality of answers", "quality" in groups),
    )
    return [name for name, there in areas if not there]


def _how_sure(pairs: Sequence[tuple[str, Subject]]) -> Answer:
    question = "How sure"
    measured = [(name, subject) for name, subject in pairs if subject.headline]
    if not measured:
        asked = max((row.asked for _, subject in pairs for row in subject.checks), default=0)
        if not asked:
            return Answer(question=question, words="There is no number here to be sure of.")
        words = "Each check was asked once" if asked == 1 else f"Checks were asked up to {asked} times"
        return Answer(question=question, words=f"{words}; no rate was measured, so there is no interval.")
    sentences = [_certainty(subject) for _, subject in measured]
    boots = min(row.boots for _, subject in measured for row in subject.headline)
    wide = any((relative_width(row.decode_tok_s) or 0) > WIDE for _, s in measured for row in s.headline)
    tone = Tone.WARN if wide or boots < MIN_BOOTS else Tone.GOOD
    labels = join(dict.fromkeys(label for _, subject in measured for label in subject.labels))
    labelled = f" Made with a rule set aside: {labels}." if labels else ""
    if boots < MIN_BOOTS:
        closing = f"Another boot may differ by more than another request: {MIN_BOOTS} boots are needed to rank tiers."
    else:
        closing = "The intervals span boots, so they say what another boot would give."
    if len(measured) == 1:
        return Answer(question=question, words=f"{sentences[0]} {closing}{labelled}", tone=tone)
    points = tuple(f"{name}: {sentence}" for (name, _), sentence in zip(measured, sentences, strict=True))
    return Answer(question=question, words=f"{closing}{labelled}", tone=tone, points=points)


def _certainty(subject: Subject) -> str:
    rows: Sequence[ClassSpeed] = subject.headline
    boots, requests = max(row.boots for row in rows), min(row.requests for row in rows)
    widths = [(width, row.prompt_class) for row in rows if (width := relative_width(row.decode_tok_s)) is not None]
    basis = f"{count(boots, 'boot')}, {count(requests, 'request')} a class"
    if not widths:
        return f"{basis}: one value has no interval."
    width, prompt_class = max(widths)
    verdict = ", too wide to quote the mean alone" if width > WIDE else ""
    return f"{basis}, 95 % intervals; the widest is ±{percent(width)} ({prompt_class}){verdict}."
