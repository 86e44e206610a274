"""What a reader of a report would do next: the most urgent gaps first, each with a command that exists."""

from collections.abc import Sequence
from typing import Final

from redline.checks.check import CheckStatus
from redline.checks.stages import StageState
from redline.checks.suites import Suite, suite_checks
from redline.report.model import Answer, BootFact, StageRow, Subject
from redline.report.words import capital, relative_width
from redline.stats.compare import MIN_BOOTS

# Half an interval over the mean: beyond this it orders next to nothing, and a reader should know before quoting it.
WIDE: Final = 0.10
_SHOWN: Final = 3


def what_next(
    subjects: Sequence[Subject], boots: Sequence[BootFact], program: str, stages: Sequence[StageRow] = ()
) -> Answer:
    """Return the answer to what next, about subjects or about a rig on which nothing was measured."""
    failed = [boot for subject in subjects for boot in subject.boots if boot.failed] or [b for b in boots if b.failed]
    steps = [
        (0, capital((*boot.remedies, "Read what the engine printed last, below.")[0]), f"{program} logs")
        for boot in failed[:1]
    ]
    if any(row.state is StageState.INTERRUPTED for row in stages):
        steps.append((1, "Go on with the report, as long as its server lives.", f"{program} report --resume"))
    for subject in subjects:
        steps += _steps(subject, program)
    measured = [subject for subject in subjects if subject.headline]
    if len(measured) >= 2:
        names = " ".join(subject.slug or subject.name for subject in measured[:2])
        steps.append((4, "Compare them.", f"{program} compare {names}"))
    if not steps and subjects:
        names = " ".join(subject.slug or subject.runs[-1].run_id for subject in subjects)
        steps.append((5, "Share it as a page, or as a row of a table.", f"{program} report {names} --html report.html"))
    if not steps:
        steps.append((0, "Serve the tier that suits this machine, and measure it.", f"{program} up"))
    chosen = sorted(steps, key=lambda step: step[0])[:_SHOWN]
    return Answer(
        question="What next",
        words=" ".join(dict.fromkeys(text for _, text, _ in chosen)),
        commands=tuple(dict.fromkeys(command for _, _, command in chosen)),
    )


def _asks_again(check_id: str) -> str:
    """Return the command that asks a check again, the cheapest that holds it."""
    kind = check_id.partition(".")[0]
    if kind in ("soak", "ramp"):
        return kind
    suites = {suite: {check.id for check in suite_checks(suite)} for suite in Suite}
    found = next((suite for suite, ids in suites.items() if check_id in ids), Suite.SMOKE)
    return "verify" if found is Suite.SMOKE else f"verify --suite {found.value}"


def _steps(subject: Subject, program: str) -> list[tuple[int, str, str]]:
    """Return what a subject still lacks: urgency, sentence, command."""
    if any(boot.failed for boot in subject.boots):
        return []
    slug = f" {subject.slug}" if subject.slug else f" --url {subject.name}"
    steps = []
    if failed := subject.checks_with(CheckStatus.FAIL):
        asks = f"{program} {_asks_again(failed[0].check_id)}{slug}"
        steps.append((1, f"See why {subject.name} failed a check.", asks))
    if not subject.checks:
        steps.append((2, f"Check that {subject.name} does what it should.", f"{program} verify{slug}"))
    elif not subject.speeds:
        steps.append((2, f"Measure how fast {subject.name} is.", f"{program} bench --quick{slug}"))
    if subject.slug and subject.headline and subject.headline[0].boots < MIN_BOOTS:
        steps.append(
            (3, f"Measure {MIN_BOOTS} boots, so that tiers can be ranked.", f"{program} down; {program} up{slug}")
        )
    elif any((relative_width(row.decode_tok_s) or 0) > WIDE for row in subject.headline):
        steps.append((3, "The rates scatter: measure again while nothing else runs.", f"{program} bench --quick{slug}"))
    return steps
