"""Can a submission be true? Consistent in itself, within what memory can deliver, no copy of what is known.

A refusal is something that cannot be so; a doubt is something that a reader of the evidence should know.
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Final

from redline.catalog.explain import evidence_of
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.plan.cards import find_hardware, host_with
from redline.plan.dispatch import plan_tier
from redline.plan.types import Verdict
from redline.record.manifest import DEFINITIONS_VERSION
from redline.report.submission import (
    SUBMISSION_SCHEMA,
    Doubt,
    Submission,
    SubmittedSample,
    digest_of,
    measured_boots,
    numbers_of,
)
from redline.rig.types import Gpu
from redline.settings import Layers
from redline.units import GIB

_GPU: Final = re.compile(r"(.+?) (\d{6,15})")
# A file's embedding table is looked up, not read through; everything else is read for every step.
_READ_SHARE: Final = 0.85
# Below this weights may stand in a processor's or GPU's cache, and no bound on memory says anything.
_LEAST_BYTES: Final = GIB
_MOST_TOK_S: Final = 1e5
_MOST_TOKENS: Final = 10**7
_FIRST_DAY: Final = date(2026, 1, 1)


def judge(catalog: Catalog, submission: Submission, today: date | None = None) -> list[Doubt]:
    """Return everything that speaks against a submission, refusals first."""
    impossible = list(_samples(submission))
    found = [*_form(catalog, submission, today or datetime.now(UTC).date()), *impossible]
    if not impossible:  # sums over values that cannot be are nothing to look at
        found += _numbers(submission)
    if not any(doubt.refuses for doubt in found):
        found += [*_physics(catalog, submission), *_planner(catalog, submission), *_known(catalog, submission)]
    return sorted(found, key=lambda doubt: not doubt.refuses)


def _form(catalog: Catalog, submission: Submission, today: date) -> Iterator[Doubt]:
    if submission.schema_version != SUBMISSION_SCHEMA:
        yield _no("schema", f"it has schema {submission.schema_version}; this redline reads {SUBMISSION_SCHEMA}")
    if submission.definitions_version != DEFINITIONS_VERSION:
        yield _no("definitions", f"its words have the meaning of definitions {submission.definitions_version}")
    if digest_of(submission) != submission.submission_id:
        yield _no("digest", "it is not as redline wrote it: the id does not belong to the content")
    key = catalog.tiers.get(submission.slug)
    if key is None:
        yield _no("tier", f"the catalogue has no tier {submission.slug[:80]!r}")
    elif key.engine != submission.engine:
        yield _no("engine", f"{submission.slug} is a tier of {key.engine}, and it says {submission.engine[:40]!r}")
    try:
        day = date.fromisoformat(submission.measured_on)
    except ValueError:
        yield _no("date", f"{submission.measured_on[:20]!r} is no day")
    else:
        if not _FIRST_DAY <= day <= today:
            yield _no("date", f"measured on {day}, which is {'to come' if day > today else 'before redline'}")
    if not submission.samples and not any(boot.failure for boot in submission.boots):
        yield _no("empty", "it measures nothing, and tells of no boot that failed")


def _samples(submission: Submission) -> Iterator[Doubt]:
    wrong = [text for one in submission.samples if (text := _impossible(one))]
    if wrong:
        yield Doubt(
            rule="samples",
            refuses=True,
            message=f"{len(wrong)} of {len(submission.samples)} samples cannot be: {wrong[0]}",
            details=tuple(dict.fromkeys(wrong)),
        )


def _impossible(one: SubmittedSample) -> str | None:
    """Return why a sample cannot be, or None."""
    for name in ("decode_tok_s", "prefill_tok_s", "ttft_s"):
        value = getattr(one, name)
        if value is not None and not (math.isfinite(value) and 0 < value <= _MOST_TOK_S):
            return f"{name} {value:g}"
    for name in ("completion_tokens", "prompt_tokens", "drafts", "draft_tokens", "accepted_tokens"):
        count = getattr(one, name)
        if count is not None and not 0 <= count <= _MOST_TOKENS:
            return f"{name} {count}"
    if one.accepted_tokens is not None and one.draft_tokens is not None and one.accepted_tokens > one.draft_tokens:
        return f"{one.accepted_tokens} tokens accepted of {one.draft_tokens} drafted"
    if one.decode_tok_s is not None and not one.completion_tokens:
        return "a decode rate without a token"
    return None


def _numbers(submission: Submission) -> Iterator[Doubt]:
    """Every stated number must be what the samples give."""
    stated = {(row.metric, row.regime, row.prompt_class): row for row in submission.numbers}
    worked = {(row.metric, row.regime, row.prompt_class): row for row in numbers_of(measured_boots(submission))}
    if stated.keys() != worked.keys():
        yield _no("numbers", "its numbers and its samples are not about the same things")
        return
    for key, row in stated.items():
        other = worked[key]
        pairs = ((row.mean, other.mean), (row.low, other.low), (row.high, other.high))
        if (row.requests, row.boots) != (other.requests, other.boots) or not all(_same(a, b) for a, b in pairs):
            yield _no("numbers", f"{' '.join(key)} is stated as {row.mean:g}; the samples give {other.mean:g}")


def _same(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-6)


def _physics(catalog: Catalog, submission: Submission) -> Iterator[Doubt]:
    """Each step reads the weights once: tokens a second are bounded by bandwidth over weights, times tokens a step."""
    tier = resolve(catalog, submission.slug, Layers())
    weights = catalog.artifacts[tier.artifact.value].size_bytes
    gpus = gpus_of(submission)
    records = [find_hardware(catalog, gpu.name) for gpu in gpus]
    if not records or weights < _LEAST_BYTES:
        return
    if any(record is None for record in records):
        yield Doubt(rule="bandwidth", refuses=False, message="its GPUs are not in the catalogue: no bound on its rates")
        return
    bandwidth = sum(record.bandwidth_bytes_s for record in records if record is not None)
    steps_s = bandwidth / (weights * _READ_SHARE)
    depth = submission.resolved.get("spec_n")
    most_a_step = 1 + (int(depth.value) if depth is not None and isinstance(depth.value, int) else tier.spec_n.value)
    for row in submission.numbers:
        if row.metric != "decode_tok_s":
            continue
        length = _acceptance(submission, row.regime, row.prompt_class) or float(most_a_step)
        bound = steps_s * min(length, most_a_step)
        if row.mean > bound:
            yield _no(
                "bandwidth",
                f"{row.prompt_class} at {row.mean:.0f} tok/s; its GPUs' memory delivers at most {bound:.0f} "
                f"({length:.1f} tokens a step)",
            )


def most_tok_s(catalog: Catalog, slug: str, bandwidth_bytes_s: float) -> float | None:
    """Return the most tokens a second that memory delivers if every drafted token is accepted; None for no bound."""
    tier = resolve(catalog, slug, Layers())
    weights = catalog.artifacts[tier.artifact.value].size_bytes
    if weights < _LEAST_BYTES:
        return None
    return bandwidth_bytes_s / (weights * _READ_SHARE) * (1 + int(tier.spec_n.value))


def _acceptance(submission: Submission, regime: str, prompt_class: str) -> float | None:
    """Return tokens a step of a class: requests in which nothing was drafted yield one a step."""
    own = [one for one in submission.samples if (one.regime, one.prompt_class) == (regime, prompt_class)]
    if any(one.drafts is None or one.accepted_tokens is None for one in own):
        return None
    drafts = sum(one.drafts or 0 for one in own)
    return 1 + sum(one.accepted_tokens or 0 for one in own) / drafts if drafts else 1.0


def _planner(catalog: Catalog, submission: Submission) -> Iterator[Doubt]:
    gpus = gpus_of(submission)
    if not gpus or not any(boot.ready_s is not None for boot in submission.boots):
        return
    memory = submission.rig.get("memory_gib")
    rig = host_with(
        gpus, memory_bytes=(memory if isinstance(memory, int) else 64) * GIB, wsl=bool(submission.rig.get("wsl"))
    )
    fit = plan_tier(catalog, resolve(catalog, submission.slug, Layers()), rig)
    if fit.verdict is Verdict.NO:
        why = "; ".join(fit.reasons[:2]) or "not enough memory"
        yield Doubt(rule="planner", refuses=False, message=f"it ran where the planner says that it does not fit: {why}")


def gpus_of(submission: Submission) -> tuple[Gpu, ...]:
    """Return the GPUs of a fingerprint, `NAME BYTES, NAME BYTES`."""
    found = [_GPU.fullmatch(part) for part in str(submission.rig.get("gpus") or "").split(", ")]
    return tuple(
        Gpu(
            index=index,
            name=match[1],
            uuid=f"gpu-{index}",
            memory_total_bytes=int(match[2]),
            memory_free_bytes=int(match[2]),
            compute=None,
        )
        for index, match in enumerate(match for match in found if match)
    )


def _known(catalog: Catalog, submission: Submission) -> Iterator[Doubt]:
    rows = evidence_of(catalog, submission.slug)
    if any(row.id.startswith(f"{evidence_id(submission)}/") for row in rows):
        yield _no("duplicate", "it is in the catalogue already")
        return
    means = [row.mean for row in submission.numbers if row.metric == "decode_tok_s"]
    twins = [row for row in rows if any(math.isclose(row.value, mean, rel_tol=1e-9) for mean in means)]
    if twins:
        yield _no("duplicate", f"its decode rate is that of {twins[0].id}, to the last digit")


def evidence_id(submission: Submission) -> str:
    """Return the id under which a submission stands in a catalogue."""
    return f"submission-{submission.submission_id}"


def _no(rule: str, message: str) -> Doubt:
    return Doubt(rule=rule, refuses=True, message=message)
