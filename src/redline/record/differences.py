"""What differs between the conditions of runs, and in which respect: so that a ratio is known to be about one thing.

Knows manifests only. Which differences forbid a verdict is for the comparison to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from redline.record.manifest import RunManifest


class Respect(StrEnum):
    """In which respect two runs differ."""

    MEANING = "meaning"  # the definitions of the measured words: numbers of two meanings have no ratio
    WORKLOAD = "workload"
    RIG = "rig"
    ENGINE = "engine"
    TIER = "tier"
    REDLINE = "redline"
    COMMAND_LINE = "command line"  # follows from the others; listed for the reader


@dataclass(frozen=True, slots=True)
class Difference:
    """One field with the value of either side; absent values are None."""

    respect: Respect
    field: str
    a: str | None
    b: str | None


# Where a server listens and what it is called say nothing about how fast it is. The engine is a respect of its own.
_IRRELEVANT_FIELDS: Final = frozenset({"port", "bind_host", "served_name", "status", "status_note", "engine_version"})
_IRRELEVANT_FLAGS: Final = frozenset({"--port", "--host", "--alias", "--model", "--served-model-name", "--api-key"})


def differences(a: RunManifest, b: RunManifest) -> tuple[Difference, ...]:
    """Return what differs, the gravest first. Ids, times, ports and addresses never count, nor what one side lacks."""
    found = [
        *_compare(Respect.MEANING, {"definitions": a.definitions_version}, {"definitions": b.definitions_version}),
        *_compare(Respect.WORKLOAD, _prefixed("seed", a.seeds), _prefixed("seed", b.seeds)),
        *(_compare(Respect.RIG, _rig(a), _rig(b)) if a.rig and b.rig else ()),
        *(_engines(a, b) if a.engine and b.engine else ()),
        *_compare(Respect.TIER, *_tiers(a, b)),
        *_compare(Respect.REDLINE, {"redline": a.redline_version}, {"redline": b.redline_version}),
    ]
    if a.argv and b.argv:
        found += _compare(Respect.COMMAND_LINE, _flags(a.argv), _flags(b.argv))
    return tuple(found)


def _compare(respect: Respect, a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    names = sorted({*a, *b})
    return [
        Difference(respect, name, _word(a.get(name)), _word(b.get(name)))
        for name in names
        if a.get(name) != b.get(name)
    ]


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


def _prefixed(word: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{word} {name}": value for name, value in values.items()}


def _rig(manifest: RunManifest) -> dict[str, Any]:
    """The facts of the rig; the digest only repeats them."""
    return {name: value for name, value in manifest.rig.items() if name != "digest"}


def _engines(a: RunManifest, b: RunManifest) -> list[Difference]:
    """Another engine is part of another tier, by its very name; another version of one engine is not."""
    sides = [{"engine": side.engine, "engine version": side.engine_version} for side in (a, b)]
    return _compare(Respect.ENGINE if a.engine == b.engine else Respect.TIER, sides[0], sides[1])


def _tiers(a: RunManifest, b: RunManifest) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is served: slug, settled values, files, and every rule that was overridden.

    An endpoint that redline did not start has no settled values; nothing is said about those then.
    """
    sides = []
    for side in (a, b):
        facts: dict[str, Any] = {"slug": side.slug}
        if a.resolved and b.resolved:
            facts |= {name: entry.value for name, entry in side.resolved.items() if name not in _IRRELEVANT_FIELDS}
        if a.artifacts and b.artifacts:
            facts |= _prefixed("file", side.artifacts)
        facts["overrides"] = ", ".join(sorted({*side.overrides, *side.labels})) or None
        sides.append(facts)
    return sides[0], sides[1]


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """Return flag -> value of a command line; what stands before the first flag is the program."""
    flags: dict[str, str] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            flags[name] = value
        elif name:
            flags[name] = f"{flags[name]} {word}".strip()
    return {name: value for name, value in flags.items() if name not in _IRRELEVANT_FLAGS}
