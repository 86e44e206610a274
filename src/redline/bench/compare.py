"""Compares two arms of boots: what differs, the ratio of each metric with its interval, and a verdict where earned.

A verdict needs three boots an arm, since boots differ more than requests do, and arms that differ in one respect
only. The ratio is B over A; how arms are weighed against each other is for `stats.compare` to say.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final

from redline.bench.boots import LESS_IS_BETTER, METRICS, MeasuredBoot, boots_of, values_by_prompt
from redline.record.differences import Difference, Respect, differences
from redline.record.reading import RunRecord
from redline.stats.boots import Boot
from redline.stats.compare import DEFAULT_ALPHA, DEFAULT_MARGIN, Verdict, compare_arms
from redline.stats.interval import Estimate, estimate_ratio

GATE_METRIC: Final = "decode_tok_s"
# Differences that change what a number means, or what was asked for it: no ratio would be of anything.
_FORBIDS_A_RATIO: Final = frozenset({Respect.MEANING})
# Respects that do not count as a cause of their own.
_FOLLOWS: Final = frozenset({Respect.COMMAND_LINE, Respect.WORKLOAD})


class Basis(StrEnum):
    """What a ratio's interval spans."""

    BOOTS = "boots"  # another boot of either arm would fall into it
    PROMPTS = "prompts"  # the same prompts on these very boots; says nothing of others
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """B over A for one metric and class of one regime. `ratio` is None where either side has no value."""

    metric: str
    regime: str
    prompt_class: str
    mean_a: float | None
    mean_b: float | None
    boots_a: int
    boots_b: int
    ratio: Estimate | None
    basis: Basis
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side: what it is called, its runs and its boots."""

    name: str
    run_ids: tuple[str, ...]
    boots: int
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole comparison. `about` is the respect in which the arms differ, or why no single one can be named."""

    a: Arm
    b: Arm
    margin: float
    differences: tuple[Difference, ...]
    confounded: tuple[str, ...]
    about: str
    rows: tuple[Ratio, ...]
    verdict: Verdict
    why: str

    @property
    def exit_code(self) -> int:
        """As a gate: 0 not slower, 1 slower, 3 undetermined."""
        return {Verdict.SLOWER: 1, Verdict.UNDETERMINED: 3}.get(self.verdict, 0)


def compare(
    a: Sequence[RunRecord], b: Sequence[RunRecord], *, names: tuple[str, str], margin: float = DEFAULT_MARGIN
) -> Comparison:
    """Compare two non-empty sets of runs; `margin` is how far apart two arms may be and still count as equivalent."""
    arms = tuple(boots_of(a)), tuple(boots_of(b))
    found, confounded = _respects(a, b)
    keys = _common_keys(*arms)
    blocked = [item for item in found if item.respect in _FORBIDS_A_RATIO]
    gated = max(1, len(keys))
    rows = (
        ()
        if blocked
        else tuple(
            _ratio(arms, metric, *key, margin=margin, looks=gated, confounded=confounded)
            for metric in METRICS
            for key in keys
        )
    )
    verdict, why = _overall(rows, blocked, keys)
    return Comparison(
        a=_arm(names[0], a, arms[0]),
        b=_arm(names[1], b, arms[1]),
        margin=margin,
        differences=found,
        confounded=confounded,
        about=_about(found, confounded),
        rows=rows,
        verdict=verdict,
        why=why,
    )


def _arm(name: str, records: Sequence[RunRecord], boots: Sequence[MeasuredBoot]) -> Arm:
    run_ids = tuple(record.run_id for record in records)
    return Arm(name=name, run_ids=run_ids, boots=len(boots), requests=sum(len(boot.samples) for boot in boots))


def _respects(a: Sequence[RunRecord], b: Sequence[RunRecord]) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return what differs between the arms, and every respect that makes the comparison about more than one thing."""
    between = tuple(
        dict.fromkeys(item for one in a for other in b for item in differences(one.manifest, other.manifest))
    )
    within = {
        item.respect
        for arm in (a, b)
        for other in arm[1:]
        for item in differences(arm[0].manifest, other.manifest)
        if item.respect not in _FOLLOWS
    }
    causes = _causes(between)
    reasons = [f"the arms differ in {' and in '.join(causes)}"] if len(causes) > 1 else []
    reasons += [f"one arm mixes runs that differ in {respect.value}" for respect in sorted(within)]
    return between, tuple(reasons)


def _about(found: Sequence[Difference], confounded: Sequence[str]) -> str:
    if confounded:
        return "; ".join(confounded)
    causes = _causes(found)
    return causes[0] if causes else "nothing that is recorded: the arms are repeats of each other"


def _causes(found: Sequence[Difference]) -> list[str]:
    """Return the respects that a ratio may be due to. Another redline counts only where nothing else differs: what it
    changes about a server shows as a difference of the tier."""
    respects = list(dict.fromkeys(item.respect for item in found if item.respect not in _FOLLOWS))
    others = [respect for respect in respects if respect is not Respect.REDLINE]
    return [respect.value for respect in others or respects]


def _common_keys(a: Sequence[MeasuredBoot], b: Sequence[MeasuredBoot]) -> list[tuple[str, str]]:
    """Return the (regime, class) pairs that both arms were measured with, in A's order."""
    sides = [
        dict.fromkeys((sample.regime, str(sample.prompt_class)) for boot in arm for sample in boot.samples)
        for arm in (a, b)
    ]
    return [key for key in sides[0] if key in sides[1]]


def _ratio(
    arms: tuple[Sequence[MeasuredBoot], Sequence[MeasuredBoot]],
    metric: str,
    regime: str,
    prompt_class: str,
    *,
    margin: float,
    looks: int,
    confounded: Sequence[str],
) -> Ratio:
    values = _on_common_prompts([_per_boot(arm, metric, regime, prompt_class) for arm in arms])
    sides = [[Boot(name, tuple(found.values())) for name, found in side] for side in values]
    ratio, basis, verdict, why = None, Basis.NONE, Verdict.UNDETERMINED, "one arm has no value"
    if sides[0] and sides[1]:
        better = metric not in LESS_IS_BETTER
        # The shown interval is one row's own; the verdict shares its chance of a false alarm among all classes.
        shown, judged = (
            compare_arms(sides[0], sides[1], higher_is_better=better, margin=margin, alpha=DEFAULT_ALPHA / share)
            for share in (1, looks)
        )
        verdict, why = judged.verdict, judged.reason
        few = min(len(side) for side in sides)
        ratio, basis = (
            Estimate(n=few, mean=shown.ratio, median=shown.ratio, low=shown.low, high=shown.high),
            Basis.BOOTS,
        )
        if shown.low is None:
            ratio, basis = _by_prompt(values, ratio)
    if verdict is not Verdict.UNDETERMINED and confounded:
        verdict, why = Verdict.UNDETERMINED, f"confounded: {'; '.join(confounded)}"
    means = [math.exp(fmean(boot.log_mean for boot in side)) if side else None for side in sides]
    return Ratio(
        metric=metric,
        regime=regime,
        prompt_class=prompt_class,
        mean_a=means[0],
        mean_b=means[1],
        boots_a=len(sides[0]),
        boots_b=len(sides[1]),
        ratio=ratio,
        basis=basis,
        verdict=verdict,
        why=why,
    )


_ByPrompt = tuple[str, Mapping[int, float]]


def _per_boot(arm: Sequence[MeasuredBoot], metric: str, regime: str, prompt_class: str) -> list[_ByPrompt]:
    found = ((boot.boot_id, values_by_prompt(boot.samples, metric, regime, prompt_class)) for boot in arm)
    return [(name, values) for name, values in found if values]


def _on_common_prompts(values: Sequence[Sequence[_ByPrompt]]) -> list[list[_ByPrompt]]:
    """Keep the prompts that every boot answered, so that none is judged on easier ones; all where none is."""
    boots = [found for side in values for _, found in side]
    common = set.intersection(*(set(boot) for boot in boots)) if boots else set()
    if not common:
        return [list(side) for side in values]
    return [[(name, {prompt: boot[prompt] for prompt in common}) for name, boot in side] for side in values]


def _by_prompt(values: Sequence[Sequence[_ByPrompt]], plain: Estimate) -> tuple[Estimate, Basis]:
    """Return the ratio prompt by prompt, where too few boots give no interval of their own."""
    pooled = [_geometric_means(found for _, found in side) for side in values]
    prompts = sorted(pooled[0].keys() & pooled[1].keys())
    if len(prompts) < 2:
        return plain, Basis.NONE
    paired = estimate_ratio([pooled[1][prompt] for prompt in prompts], [pooled[0][prompt] for prompt in prompts])
    return paired, Basis.PROMPTS


def _geometric_means(boots: Iterable[Mapping[int, float]]) -> dict[int, float]:
    logs: dict[int, list[float]] = {}
    for boot in boots:
        for prompt, value in boot.items():
            logs.setdefault(prompt, []).append(math.log(value))
    return {prompt: math.exp(fmean(found)) for prompt, found in logs.items()}


def _overall(
    rows: Sequence[Ratio], blocked: Sequence[Difference], keys: Sequence[tuple[str, str]]
) -> tuple[Verdict, str]:
    """Return the gate's verdict: slower when any class decodes slower, not slower when every class is judged so."""
    if blocked:
        return Verdict.UNDETERMINED, "the measured words have other meanings in the two arms"
    gate = [row for row in rows if row.metric == GATE_METRIC]
    if not keys or not gate:
        return Verdict.UNDETERMINED, "the arms share no regime and prompt class"
    slower = [row.prompt_class for row in gate if row.verdict is Verdict.SLOWER]
    if slower:
        return Verdict.SLOWER, f"{', '.join(slower)} decodes slower"
    open_ = [row for row in gate if row.verdict is Verdict.UNDETERMINED]
    if open_:
        return Verdict.UNDETERMINED, open_[0].why
    faster = [row.prompt_class for row in gate if row.verdict is Verdict.FASTER]
    if faster:
        return Verdict.FASTER, f"{', '.join(faster)} decodes faster, no class slower"
    return Verdict.EQUIVALENT, "every class decodes within the margin"
