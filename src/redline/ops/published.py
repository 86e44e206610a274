"""Takes numbers that others published into the catalogue: a post or a table, with its source and without its samples.

Nobody can work such numbers out again, so they stand as `reported`, beside their source, and never count towards a
status. What cannot be is refused all the same: more than memory delivers, a day to come, a copy of what is known.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from redline.catalog.evidence import METRICS, EvidenceKind, EvidenceSet, Number
from redline.catalog.load import load_catalog
from redline.catalog.sources import Problems, read_source
from redline.catalog.types import Catalog
from redline.errors import AccessError, RedlineError, UsageError
from redline.ops.evidence import MAX_BYTES, evidence_yaml
from redline.ops.plausible import most_tok_s
from redline.plan.cards import find_hardware
from redline.record.files import make_dir, write_atomic
from redline.record.plain import plain_line
from redline.report.submission import Doubt

_ID: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
_CARDS: Final = re.compile(r"(\d+)x ([A-Za-z0-9 ]+)")
_DAY: Final = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?")
_RATES: Final = frozenset({"decode_narrative", "decode_code"})
_MOST: Final = 1e9
_TEXT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What came of a file of published numbers: what speaks against it, and the sets that are taken in."""

    doubts: tuple[Doubt, ...]
    sets: tuple[EvidenceSet, ...]
    path: str | None = None

    @property
    def refused(self) -> bool:
        """Whether nothing was taken."""
        return not self.sets


def read_published(path: Path) -> tuple[EvidenceSet, ...]:
    """Return the sets of numbers in a catalogue file that holds nothing else.

    Raises:
        AccessError: the file cannot be read.
        UsageError: too large, not of this form, or with other records in it.
    """
    try:
        if path.stat().st_size > MAX_BYTES // 16:
            raise UsageError(f"{path} is larger than any list of numbers.", next_step="Give one post's numbers a file.")
    except OSError as error:
        raise AccessError(f"{path} cannot be read: {error.strerror}.", next_step="Give the path of its file.") from None
    problems = Problems()
    source = read_source(path, False, problems)  # noqa: FBT003 -- whether it is packaged
    if source is None:
        raise UsageError(
            f"{path} is not a list of numbers.",
            next_step="Its form is in docs/reports.md.",
            details=tuple(plain_line(line, 200) for line in problems.lines[:8]),
        )
    others = [name for name in type(source.content).__dataclass_fields__ if name != "evidence_sets"]
    if any(getattr(source.content, name) for name in others) or not source.content.evidence_sets:
        raise UsageError(f"{path} must hold `evidence_sets` and nothing else.", next_step="Take other records out.")
    return tuple(source.content.evidence_sets)


def import_published(
    catalog: Catalog, sets: Sequence[EvidenceSet], folder: Path, *, dry_run: bool = False, today: date | None = None
) -> Published:
    """Judge published numbers, and write them into a catalogue folder unless they are refused.

    Raises:
        AccessError, DiskSpaceError: the file cannot be written.
        UsageError: the catalogue does not hold together with them; they were taken out again.
    """
    doubts = [doubt for one in sets for doubt in judge_published(catalog, one, today or datetime.now(UTC).date())]
    names = [one.id for one in sets]
    if len(set(names)) < len(names):
        doubts.append(_no("id", "two of its sets have one id"))
    if any(doubt.refuses for doubt in doubts):
        return Published(doubts=tuple(doubts), sets=())
    taken = tuple(_plain(one) for one in sets)
    if dry_run:
        return Published(doubts=tuple(doubts), sets=taken)
    make_dir(folder)
    path = folder / f"published-{sets[0].id}.yaml"
    write_atomic(path, evidence_yaml(*taken))
    try:
        load_catalog(folder)
    except RedlineError:
        path.unlink(missing_ok=True)
        raise
    return Published(doubts=tuple(doubts), sets=taken, path=str(path))


def judge_published(catalog: Catalog, one: EvidenceSet, today: date) -> Iterator[Doubt]:
    """Yield everything that speaks against a set of published numbers."""
    if _ID.fullmatch(one.id) is None:
        yield _no("id", f"{one.id[:60]!r} is no id: small letters, digits, dots and dashes")
    elif f"{one.id}/1" in catalog.evidence:
        yield _no("duplicate", f"{one.id} is in the catalogue already")
    if one.kind not in (EvidenceKind.REPORTED, EvidenceKind.PROJECTED):
        yield _no("kind", f"{one.id} says {one.kind.value}: numbers without their samples are `reported`")
    if not one.source.strip():
        yield _no("source", f"{one.id} names no source")
    if _DAY.fullmatch(one.date) is None or one.date > today.isoformat():
        yield _no("date", f"{one.date[:20]!r} is no day that was")
    for number in one.numbers:
        yield from _number(catalog, one, number)


def _number(catalog: Catalog, one: EvidenceSet, number: Number) -> Iterator[Doubt]:
    what = f"{number.slug[:80]} {number.metric[:40]} {number.value:g}"
    key = catalog.tiers.get(number.slug)
    if key is None:
        yield _no("tier", f"the catalogue has no tier {number.slug[:80]!r}")
        return
    if key.engine != one.engine:
        yield _no("engine", f"{number.slug} is a tier of {key.engine}, and {one.id} says {one.engine[:40]!r}")
    if number.metric not in METRICS:
        yield _no("metric", f"there is no metric {number.metric[:40]!r}")
    if not (math.isfinite(number.value) and 0 <= number.value <= _MOST):
        yield _no("value", f"{what} cannot be")
        return
    if number.low is not None and number.high is not None and not number.low <= number.value <= number.high:
        yield _no("interval", f"{what} lies outside its own interval")
    if number.metric in _RATES:
        yield from _physics(catalog, one, number)
    for row in catalog.evidence.values():
        same = (row.slug, row.metric, row.engine_version) == (number.slug, number.metric, one.engine_version)
        if same and math.isclose(row.value, number.value, rel_tol=1e-9) and row.date[:7] == one.date[:7]:
            yield _no("duplicate", f"{what} is known already, from {row.source[:120]}")
            return


def _physics(catalog: Catalog, one: EvidenceSet, number: Number) -> Iterator[Doubt]:
    found = _CARDS.match(one.rig)
    hardware = find_hardware(catalog, found[2].strip()) if found else None
    if found is None or hardware is None:
        yield Doubt(rule="bandwidth", refuses=False, message=f"{one.rig[:80]!r} names no known GPU: no bound on rates")
        return
    bound = most_tok_s(catalog, number.slug, int(found[1]) * hardware.bandwidth_bytes_s)
    if bound is not None and number.value > bound:
        yield _no(
            "bandwidth", f"{number.slug} at {number.value:.0f} tok/s; the memory of its GPUs delivers {bound:.0f}"
        )


def _plain(one: EvidenceSet) -> EvidenceSet:
    """Return a set whose texts are lines of a sensible length, without control characters."""
    numbers = tuple(replace(number, setup=plain_line(number.setup, _TEXT)) for number in one.numbers)
    return replace(
        one,
        rig=plain_line(one.rig, _TEXT),
        engine_version=plain_line(one.engine_version, 80),
        source=plain_line(one.source, _TEXT),
        setup=plain_line(one.setup, _TEXT),
        patches=tuple(plain_line(patch, 80) for patch in one.patches),
        numbers=numbers,
    )


def _no(rule: str, message: str) -> Doubt:
    return Doubt(rule=rule, refuses=True, message=plain_line(message, 300))
