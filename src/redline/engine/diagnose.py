"""A log into a diagnosis: which known fault it shows, on which line, and what to do. Pure; reads no file.

A log may hold several boots (a restart policy, a log that was appended to). The last one counts; when it has not yet
come to its end, the one before it counts too, since a crash loop is always caught in the middle of a boot.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from redline.engine.remedy import choose, derive, fill
from redline.engine.signatures import ANY, Signature, SignatureBook, signature_book

_TAIL_LINES: Final = 8
_END_LINES: Final = 3  # a line that is followed by more than this many others is not the end of a log
_EVIDENCE_CHARS: Final = 600
_TROUBLE: Final = ("ERROR", "CRITICAL", "Traceback (most recent call last)", "rror: ", " E ", "fatal", "FATAL")


class DiagnosisVerdict(StrEnum):
    """Whether a fault was recognised. NOTHING: the log shows no trouble at all."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a log says. `evidence` is the line that gives it away, `line_number` counts from 1.

    `boots` is how often the engine was started in this log; `tail` the last lines that look like trouble.
    """

    verdict: DiagnosisVerdict
    cause: str
    engine: str | None = None
    signature_id: str | None = None
    evidence: str | None = None
    line_number: int | None = None
    remedies: tuple[str, ...] = ()
    kind: str | None = None
    source: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    boots: int = 1
    tail: tuple[str, ...] = ()


@dataclass(slots=True)
class _Match:
    line_number: int
    line: str
    values: dict[str, str]


@dataclass(slots=True)
class _Boot:
    """One boot as far as it was read."""

    seen: set[str] = field(default_factory=set)
    matches: dict[int, _Match] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    trouble: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    last: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    ready: bool = False
    lines: int = 0


def diagnose(lines: Iterable[str], engine: str | None = None, facts: Mapping[str, object] | None = None) -> Diagnosis:
    """Return the diagnosis of a log's lines.

    `engine` limits the search to what that engine can have; without it the log itself tells. `facts` are values that
    remedies may name and that are known from elsewhere, such as a plan (`gmu`, `batched_tokens`, `block_tokens`);
    they outweigh what the log states.
    """
    reader = _Reader(signature_book(), engine)
    for number, line in enumerate(lines, 1):
        reader.take(number, line)
    return reader.conclude({name: str(value) for name, value in (facts or {}).items() if value is not None})


class _Reader:
    """Goes through a log once."""

    def __init__(self, book: SignatureBook, engine: str | None) -> None:
        self._book, self._engine = book, engine
        self._signatures = book.of_engine(engine)
        self._conditions = {text for item in self._signatures for text in (item.after, item.before) if text}
        self._boot, self._before, self._boots = _Boot(), _Boot(), 0

    def take(self, number: int, line: str) -> None:
        """Read one line."""
        stripped = line.strip()
        if not stripped:
            return
        if any(marker.text in line and self._belongs(marker.engine) for marker in self._book.new_boot):
            self._begin_boot()
        boot = self._boot
        boot.lines += 1
        boot.last.append((number, stripped))
        if any(word in line for word in _TROUBLE) and not any(item.text in line for item in self._book.harmless):
            boot.trouble.append(stripped[:_EVIDENCE_CHARS])
        self._match(number, line)
        boot.seen |= {text for text in self._conditions if text in line}
        boot.ready = boot.ready or any(marker.text in line for marker in self._book.ready)
        for value in self._book.log_values:
            if found := value.pattern.search(line):
                boot.values |= found.groupdict()

    def _match(self, number: int, line: str) -> None:
        boot = self._boot
        for index, item in enumerate(self._signatures):
            # A hang shows in its last line, everything else where it first appears.
            if item.text not in line or (index in boot.matches and not item.at_end):
                continue
            if (item.after and item.after not in boot.seen) or (item.before and item.before in boot.seen):
                continue
            found = item.pattern.search(line) if item.pattern else None
            if item.pattern is None or found:
                groups = (
                    {name: value for name, value in found.groupdict().items() if value is not None} if found else {}
                )
                boot.matches[index] = _Match(number, line.strip(), groups)

    def _belongs(self, engine: str) -> bool:
        return self._engine in (None, engine)

    def _begin_boot(self) -> None:
        self._boots += 1
        if self._boot.lines:
            self._before, self._boot = self._boot, _Boot()

    def conclude(self, facts: Mapping[str, str]) -> Diagnosis:
        """Return what was found in the end."""
        boot = self._boot
        found = self._first(boot)
        if found is None and not boot.ready and self._boots > 1:
            boot, found = self._before, self._first(self._before)
        boots = max(self._boots, 1)
        if found is None:
            return self._unknown(boots)
        item, match = found
        values = derive({**boot.values, **match.values, **facts})
        cause = fill(item.meaning, values) or item.meaning.partition(" (")[0]
        if boots > 2 and not self._boot.ready:
            cause = f"It was started {boots} times, to end the same way. {cause}"
        return Diagnosis(
            verdict=DiagnosisVerdict.KNOWN,
            cause=cause,
            engine=self._engine or (item.engine if item.engine != ANY else None),
            signature_id=item.id,
            evidence=match.line[:_EVIDENCE_CHARS],
            line_number=match.line_number,
            remedies=tuple(text for entry in item.remedies if (text := choose(entry, values))),
            kind=item.kind.value,
            source=item.source,
            values=values,
            boots=boots,
            tail=tuple(boot.trouble),
        )

    def _first(self, boot: _Boot) -> tuple[Signature, _Match] | None:
        """Return the match of the highest precedence."""
        end = {number for number, _ in list(boot.last)[-_END_LINES:]}
        for index in sorted(boot.matches):
            item, match = self._signatures[index], boot.matches[index]
            if not item.at_end or match.line_number in end:
                return item, match
        return None

    def _unknown(self, boots: int) -> Diagnosis:
        boot = self._boot if self._boot.lines else self._before
        if boot.ready and not boot.trouble:
            return Diagnosis(
                verdict=DiagnosisVerdict.NOTHING,
                cause="Nothing in this log looks like a fault; the engine came up.",
                engine=self._engine,
                boots=boots,
            )
        tail = tuple(boot.trouble) or tuple(line[:_EVIDENCE_CHARS] for _, line in list(boot.last)[-5:])
        return Diagnosis(
            verdict=DiagnosisVerdict.UNKNOWN,
            cause="Unknown: no known fault is in this log.",
            engine=self._engine,
            boots=boots,
            tail=tail,
        )
