"""Takes a submission into the catalogue as evidence, after everything that could be wrong with it was looked at."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from redline.catalog.evidence import EvidenceKind, EvidenceSet, Number
from redline.catalog.fields import TIER_FIELDS
from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.standing import Standing, standing
from redline.catalog.types import Catalog
from redline.checks.check import CheckStatus, SkipReason
from redline.checks.suites import Suite, suite_checks
from redline.errors import AccessError, RedlineError, UsageError
from redline.ops.plausible import evidence_id, judge
from redline.record.codec import from_json, jsonable
from redline.record.files import make_dir, write_atomic
from redline.record.plain import plain_line
from redline.report.submission import Doubt, Submission, SubmittedNumber, ready_s
from redline.report.words import count, rig_words
from redline.settings import Layers

# Regimes whose numbers are worth quoting, the most telling first; any other is taken when none of these is there.
_REGIMES: Final = ("canonical-1", "honest-sampled-1", "honest-greedy-1", "quick-1")
_DECODE: Final = {"prose": "decode_narrative", "code": "decode_code"}
_TTFT: Final = {"prose": "ttft", "code": "ttft_code"}
MAX_BYTES: Final = 32 * 2**20
# Where a server listens and what a client samples with say nothing about the tier.
_FREE_FIELDS: Final = frozenset({"port", "bind_host", "served_name", "status", "status_note", "threads"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of a submission: what speaks against it, the evidence, where it is, and how the tier stands now."""

    submission: Submission
    doubts: tuple[Doubt, ...]
    evidence: EvidenceSet | None
    path: str | None = None
    standing: Standing | None = None

    @property
    def refused(self) -> bool:
        """Whether it was not taken."""
        return self.evidence is None


def read_submission(path: Path) -> Submission:
    """Return a submission from its file.

    Raises:
        AccessError: the file cannot be read.
        UsageError: it is too large, no JSON, or not of this form.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is larger than any submission.", next_step="Give the .json that `submit` wrote.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AccessError(f"{path} cannot be read: {error.strerror}.", next_step="Give the path of its file.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no text.", next_step="Give the .json that `submit` wrote.") from None
    try:
        return from_json(Submission, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} is not a submission: {_first(error)}.", next_step="Give the .json that `submit` wrote, unchanged."
        ) from None


def import_submission(
    catalog: Catalog, submission: Submission, folder: Path, *, source: str = "", dry_run: bool = False
) -> Imported:
    """Judge a submission, and write it into a catalogue folder unless it is refused or nothing is to be written.

    Raises:
        AccessError, DiskSpaceError: the file cannot be written.
        UsageError: the catalogue does not hold together with it; it was taken out again.
    """
    doubts = tuple(judge(catalog, submission))
    if any(doubt.refuses for doubt in doubts):
        return Imported(submission=submission, doubts=doubts, evidence=None)
    found = evidence_of_submission(catalog, submission, source)
    if dry_run:
        return Imported(submission=submission, doubts=doubts, evidence=found)
    make_dir(folder)
    path = folder / f"{evidence_id(submission)}.yaml"
    write_atomic(path, evidence_yaml(found))
    try:
        after = load_catalog(folder)
    except RedlineError:
        path.unlink(missing_ok=True)
        raise
    return Imported(
        submission=submission,
        doubts=doubts,
        evidence=found,
        path=str(path),
        standing=standing(after, submission.slug),
    )


def evidence_of_submission(catalog: Catalog, submission: Submission, source: str = "") -> EvidenceSet:
    """Return the evidence that a submission is, in the catalogue's vocabulary."""
    where = f"{plain_line(source, 200)}, " if source else ""
    regime = _regime(submission)
    boots = count(len(_boots_of(submission, regime)), "boot")
    basis = f"regime {regime}, {boots}" if regime else f"no rate, {boots}"
    return EvidenceSet(
        id=evidence_id(submission),
        kind=EvidenceKind.MEASURED,
        rig=plain_line(rig_words(submission.rig), 200),
        engine=submission.engine,
        engine_version=plain_line(submission.engine_version, 80),
        date=submission.measured_on,
        source=f"{where}submission {submission.submission_id} ({basis})",
        numbers=tuple(_numbers(submission, regime)),
        setup=_setup(catalog, submission),
    )


def _regime(submission: Submission) -> str | None:
    """Return the regime to quote. Numbers of different regimes are never put side by side."""
    found = [row.regime for row in submission.numbers]
    return next((name for name in _REGIMES if name in found), found[0] if found else None)


def _boots_of(submission: Submission, regime: str | None) -> set[int]:
    return {one.boot for one in submission.samples if one.regime == regime}


def _numbers(submission: Submission, regime: str | None) -> Iterator[Number]:
    for row in submission.numbers:
        if row.regime == regime:
            yield from _number(submission.slug, row)
    if length := _acceptance_length(submission, regime):
        yield Number(slug=submission.slug, metric="acceptance_length", value=length)
    seconds = ready_s(submission)
    if seconds is not None:
        yield Number(slug=submission.slug, metric="boot", value=round(seconds, 3))
    for metric, share in _shares(submission):
        yield Number(slug=submission.slug, metric=metric, value=share)


def _number(slug: str, row: SubmittedNumber) -> Iterator[Number]:
    if row.metric == "decode_tok_s" and row.prompt_class in _DECODE:
        metric = _DECODE[row.prompt_class]
        yield Number(slug=slug, metric=metric, value=row.mean, n=row.requests, low=row.low, high=row.high)
    if row.metric == "ttft_s" and row.prompt_class in _TTFT:
        # A t interval of times may reach below zero, where no time is.
        low, high = (None if bound is None else max(0.0, bound * 1000) for bound in (row.low, row.high))
        yield Number(
            slug=slug, metric=_TTFT[row.prompt_class], value=row.mean * 1000, n=row.requests, low=low, high=high
        )


def _acceptance_length(submission: Submission, regime: str | None) -> float | None:
    own = [one for one in submission.samples if one.regime == regime]
    drafts = sum(one.drafts or 0 for one in own)
    return 1 + sum(one.accepted_tokens or 0 for one in own) / drafts if drafts else None


def _shares(submission: Submission) -> Iterator[tuple[str, float]]:
    """Yield the share of each suite that passed: only of suites whose every check has a verdict."""
    verdicts = {row.check_id: row for row in submission.checks}
    wanted = {
        "full_share": {check.id for check in suite_checks(Suite.FULL)},
        "stress_share": {check.id for check in suite_checks(Suite.STRESS)},
        "soak_share": {check_id for check_id in verdicts if check_id.startswith("soak.")},
    }
    for metric, ids in wanted.items():
        if not ids or not ids <= verdicts.keys():
            continue
        asked = [verdicts[check_id] for check_id in ids]
        offered = [
            row for row in asked if not (row.status is CheckStatus.SKIP and row.skip_reason is SkipReason.NOT_OFFERED)
        ]
        passed = [row for row in offered if row.status in (CheckStatus.PASS, CheckStatus.WARN)]
        if offered:
            yield metric, len(passed) / len(offered)


def _setup(catalog: Catalog, submission: Submission) -> str:
    """Return how what was measured differs from the tier as it is shipped; empty when it does not."""
    tier = resolve(catalog, submission.slug, Layers())
    words = [
        f"{name} {plain_line(str(entry.value), 60)}"
        for name, entry in submission.resolved.items()
        if name in TIER_FIELDS and name not in _FREE_FIELDS and entry.value != jsonable(getattr(tier, name).value)
    ]
    labels = [plain_line(word, 60) for word in (*submission.labels, *submission.overrides) if "experiment" in word]
    unknown = ["its settings were not recorded"] if not submission.resolved else []
    return "; ".join([*unknown, *words, *labels])


def evidence_yaml(*sets: EvidenceSet) -> str:
    """Return a catalogue file that holds some sets."""
    return yaml.safe_dump({"evidence_sets": [_set_data(one) for one in sets]}, sort_keys=False, allow_unicode=True)


def _set_data(found: EvidenceSet) -> dict[str, Any]:
    data: dict[str, Any] = jsonable(found)
    data["numbers"] = [
        {name: value for name, value in row.items() if value not in (None, "")} for row in data["numbers"]
    ]
    return {name: value for name, value in data.items() if value not in ("", [], ())}


def _first(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if details is None:
        return plain_line(str(error), 160)
    first = details(include_url=False, include_context=False, include_input=False)[0]
    return plain_line(f"{'.'.join(map(str, first['loc'])) or 'value'}: {first['msg']}", 160)
