"""How tiers are laid out and what follows from a slug: ladders, rules, aliases. Knows shapes, not their values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Scalar = str | int | float | bool | None


class Depth(StrEnum):
    """Rank of a tier's drafting; which drafter stands at a rank is a rule of the model."""

    BASE = "base"
    SUPER = "super"
    ULTRA = "ultra"


class Status(StrEnum):
    """How far a tier can be trusted; a reader should never have to guess it from prose."""

    PRODUCTION = "production"
    CAVEATS = "caveats"
    EXPERIMENTAL = "experimental"
    INCUBATING = "incubating"
    PROJECTED = "projected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How many GPUs a tier spreads over; 0 is the CPU."""

    id: str
    gpus: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TierEntry:
    """One cell of a model's ladder. `topologies` narrows it to some of the ladder's; empty: all of them."""

    name: str
    series: str
    depth: Depth
    topologies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The tiers that one engine offers for one model."""

    model: str
    engine: str
    topologies: tuple[str, ...]
    tiers: tuple[TierEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A rule's value taken from a fact: a dotted path into the facts of the tier, such as `model.context_max`."""

    ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A rule's value chosen by another one: `by` names a word of the slug, a settled field or a fact's path.

    A value of `by` that `of` does not list leaves the field alone.
    """

    by: str
    of: Mapping[str, Scalar]


RuleValue = Scalar | Reference | Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Sets fields of the tiers it matches. Rules run in order; one that changes a field set before states a reason.

    `absent` names fields that the matched tiers do not have: they are None, and no setting of the user changes that.
    """

    id: str
    when: Mapping[str, str | int | tuple[str | int, ...]]
    source: str
    set: Mapping[str, RuleValue] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Another name of a slug, or of another alias."""

    id: str
    target: str
    source: str


@dataclass(frozen=True, slots=True)
class TierKey:
    """What a slug says: `engine/model-topology-name`, with the rank that its name stands for."""

    slug: str
    engine: str
    model: str
    topology: str
    name: str
    series: str
    depth: Depth
