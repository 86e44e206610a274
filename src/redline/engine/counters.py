"""An engine's own counters as numbers. A counter that the engine does not offer is None, never 0."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Totals since the server started, summed over all label series. Times in seconds."""

    prompt_tokens: float | None = None
    cached_prompt_tokens: float | None = None
    prompt_seconds: float | None = None
    generated_tokens: float | None = None
    generation_seconds: float | None = None
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    preemptions: float | None = None  # requests that lost their place and were computed again
    accepted_by_position: tuple[float, ...] | None = None


_GAUGES: Final = frozenset({"requests_running", "requests_waiting"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What drafting brought over a stretch of work. Lengths count tokens a step, the target's own token included."""

    drafts: int
    draft_tokens: int
    accepted_tokens: int

    @property
    def mean_length(self) -> float | None:
        """Mean tokens a drafted step yields: 1 + accepted / drafts; None when nothing was drafted."""
        return 1 + self.accepted_tokens / self.drafts if self.drafts else None

    @property
    def rate(self) -> float | None:
        """Share of drafted tokens that were accepted; None when nothing was drafted."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None


def parse_prometheus(text: str, names: Mapping[str, str]) -> Counters:
    """Return counters from Prometheus text; `names` maps the engine's sample names to fields of `Counters`.

    Every label series of a name is added up. A `position` label fills `accepted_by_position` in order.

    Raises:
        ValueError: not Prometheus text.
    """
    from prometheus_client.parser import text_string_to_metric_families

    totals: dict[str, float] = {}
    positions: dict[int, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            field = names.get(sample.name)
            if field == "accepted_by_position":
                index = int(sample.labels.get("position", 0))
                positions[index] = positions.get(index, 0.0) + sample.value
            elif field is not None:
                totals[field] = totals.get(field, 0.0) + sample.value
    by_position = tuple(positions[index] for index in sorted(positions)) or None
    return Counters(**totals, accepted_by_position=by_position)


def counters_delta(before: Counters, after: Counters) -> Counters | None:
    """Return what happened between two readings; None when a counter went down, since the server was restarted.

    Gauges are taken from the later reading.
    """
    values: dict[str, float | None] = {}
    for item in fields(Counters):
        if item.name == "accepted_by_position":
            continue
        old, new = getattr(before, item.name), getattr(after, item.name)
        if item.name in _GAUGES or old is None or new is None:
            values[item.name] = new if item.name in _GAUGES else None
        elif new < old:
            return None
        else:
            values[item.name] = new - old
    return Counters(**values, accepted_by_position=_delta_by_position(before, after))


def _delta_by_position(before: Counters, after: Counters) -> tuple[float, ...] | None:
    if after.accepted_by_position is None:
        return None
    old = before.accepted_by_position or ()
    padded = (*old, *([0.0] * (len(after.accepted_by_position) - len(old))))
    return tuple(new - was for new, was in zip(after.accepted_by_position, padded, strict=False))


def acceptance(delta: Counters | None) -> Acceptance | None:
    """Return the acceptance of a stretch of work, or None where the engine counts none of it."""
    if delta is None or delta.drafts is None or delta.draft_tokens is None or delta.accepted_tokens is None:
        return None
    return Acceptance(
        drafts=round(delta.drafts),
        draft_tokens=round(delta.draft_tokens),
        accepted_tokens=round(delta.accepted_tokens),
    )
