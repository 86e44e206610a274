"""What a user hands in about one tier on one rig: conditions, boots, verdicts, every sample, and the numbers they make.

Made from redacted records only. The samples go along so that whoever receives it can work every number out again; the
id is a digest of the content, so that an edit shows.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from redline import __version__
from redline.bench.boots import MeasuredBoot, boots_of
from redline.bench.quick import BenchSample
from redline.checks.check import CheckStatus, SkipReason
from redline.record.codec import jsonable
from redline.record.manifest import FieldRecord
from redline.record.reading import RunRecord
from redline.report.extract import boot_facts, check_rows, endurance, speeds_of
from redline.report.model import ClassSpeed
from redline.stats.interval import Estimate
from redline.workload.prompts import PromptClass

SUBMISSION_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedBoot:
    """A start of the server; one that failed says why, as far as it is known, with the end of its log."""

    ready_s: float | None
    memory_bytes: int | None
    failure: str | None = None
    log_tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedCheck:
    """The last verdict of a check."""

    check_id: str
    status: CheckStatus
    message: str
    skip_reason: SkipReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedSample:
    """One measured request; `boot` counts the boots it was measured on from 0."""

    boot: int
    regime: str
    prompt_class: PromptClass
    prompt_index: int
    completion_tokens: int | None
    prompt_tokens: int | None
    decode_tok_s: float | None
    prefill_tok_s: float | None
    ttft_s: float | None
    drafts: int | None
    draft_tokens: int | None
    accepted_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedNumber:
    """What the samples of one class add up to, by one measure."""

    metric: str
    regime: str
    prompt_class: str
    requests: int
    boots: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """All of it. `measured_on` is the day of the last run."""

    schema_version: int
    submission_id: str
    made_at: str
    measured_on: str
    redline_version: str
    definitions_version: int
    slug: str
    engine: str
    engine_version: str
    driver_version: str | None
    rig: Mapping[str, str | int | None]
    resolved: Mapping[str, FieldRecord]
    artifacts: Mapping[str, str]
    labels: tuple[str, ...]
    overrides: tuple[str, ...]
    boots: tuple[SubmittedBoot, ...]
    checks: tuple[SubmittedCheck, ...]
    samples: tuple[SubmittedSample, ...]
    numbers: tuple[SubmittedNumber, ...]
    endurance: tuple[str, ...] = ()
    note: str = ""


def make_submission(records: Sequence[RunRecord], *, made_at: str, note: str = "") -> Submission:
    """Return the submission of runs that are all about one tier, one engine version and one rig.

    Raises:
        ValueError: no runs, or none that says which tier and engine it was about.
    """
    known = [record.manifest for record in records if record.manifest.slug and record.manifest.engine_version]
    if not known:
        raise ValueError("no run says which tier and engine it was about")
    fullest = max(known, key=lambda manifest: len(manifest.resolved))
    measured = boots_of(records)
    draft = Submission(
        schema_version=SUBMISSION_SCHEMA,
        submission_id="",
        made_at=made_at,
        measured_on=max(record.manifest.started_at for record in records)[:10],
        redline_version=__version__,
        definitions_version=fullest.definitions_version,
        slug=fullest.slug or "",
        engine=fullest.engine or "",
        engine_version=fullest.engine_version or "",
        driver_version=fullest.driver_version,
        rig=fullest.rig,
        resolved=fullest.resolved,
        artifacts=fullest.artifacts,
        labels=tuple(dict.fromkeys(word for manifest in known for word in manifest.labels)),
        overrides=tuple(dict.fromkeys(word for manifest in known for word in manifest.overrides)),
        boots=tuple(_boots(records)),
        checks=tuple(
            SubmittedCheck(
                check_id=row.check_id, status=row.status, message=row.message[:200], skip_reason=row.skip_reason
            )
            for row in check_rows(records)
        ),
        samples=tuple(_sample(number, one) for number, boot in enumerate(measured) for one in boot.samples),
        numbers=numbers_of(measured),
        endurance=endurance(records),
        note=note[:2000],
    )
    return replace(draft, submission_id=digest_of(draft))


def _boots(records: Iterable[RunRecord]) -> Iterable[SubmittedBoot]:
    for boot in boot_facts(records):
        failure = (boot.cause or boot.reason or "of no known cause") if boot.failed else None
        yield SubmittedBoot(
            ready_s=boot.ready_s, memory_bytes=boot.memory_bytes, failure=failure, log_tail=boot.log_tail[-20:]
        )


def _sample(boot: int, one: BenchSample) -> SubmittedSample:
    return SubmittedSample(
        boot=boot,
        regime=one.regime,
        prompt_class=one.prompt_class,
        prompt_index=one.prompt_index,
        completion_tokens=one.completion_tokens,
        prompt_tokens=one.prompt_tokens,
        decode_tok_s=one.decode_tok_s,
        prefill_tok_s=one.prefill_tok_s,
        ttft_s=one.ttft_s,
        drafts=one.drafts,
        draft_tokens=one.draft_tokens,
        accepted_tokens=one.accepted_tokens,
    )


def numbers_of(boots: Sequence[MeasuredBoot]) -> tuple[SubmittedNumber, ...]:
    """Return every number that the samples of some boots give."""
    return tuple(
        _number(metric, row, found)
        for row in speeds_of(boots)
        for metric, found in (
            ("decode_tok_s", row.decode_tok_s),
            ("prefill_tok_s", row.prefill_tok_s),
            ("ttft_s", row.ttft_s),
        )
        if found is not None
    )


def _number(metric: str, row: ClassSpeed, found: Estimate) -> SubmittedNumber:
    return SubmittedNumber(
        metric=metric,
        regime=row.regime,
        prompt_class=row.prompt_class,
        requests=row.requests,
        boots=row.boots,
        mean=found.mean,
        low=found.low,
        high=found.high,
    )


def measured_boots(submission: Submission) -> tuple[MeasuredBoot, ...]:
    """Return the boots that a submission's samples were measured on, as a benchmark would have recorded them."""
    by_boot: dict[int, list[BenchSample]] = {}
    for one in submission.samples:
        by_boot.setdefault(one.boot, []).append(
            BenchSample(
                regime=one.regime,
                prompt_class=one.prompt_class,
                prompt_index=one.prompt_index,
                completion_tokens=one.completion_tokens,
                prompt_tokens=one.prompt_tokens,
                decode_tok_s=one.decode_tok_s,
                prefill_tok_s=one.prefill_tok_s,
                ttft_s=one.ttft_s,
                drafts=one.drafts,
                draft_tokens=one.draft_tokens,
                accepted_tokens=one.accepted_tokens,
                error=None if one.decode_tok_s is not None else "no rate",
            )
        )
    return tuple(MeasuredBoot(f"boot {boot}", tuple(samples)) for boot, samples in sorted(by_boot.items()))


def ready_s(submission: Submission) -> float | None:
    """Return the middle of the times that boots took, or None where none became ready."""
    times = [boot.ready_s for boot in submission.boots if boot.ready_s is not None]
    return median(times) if times else None


def digest_of(submission: Submission) -> str:
    """Return the digest of all that is stated, but for the id itself and the moment it was written."""
    content = jsonable(replace(submission, submission_id="", made_at=""))
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Something about a submission: what was looked at, whether it forbids an import, and the sentence."""

    rule: str
    refuses: bool
    message: str
    details: tuple[str, ...] = field(default=())
