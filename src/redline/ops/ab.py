"""Two tiers against each other: boots of both in the order A B B A, the same prompts in each, a verdict a class.

What a rig does slowly (warming up, throttling) then hits both arms alike. Refuses arms that differ in more than what
makes them tiers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from redline.bench.arms import ArmBoot, ClassVerdict
from redline.bench.confound import Difference, confounding, differences
from redline.bench.quick import BenchSample
from redline.bench.regime import Regime
from redline.catalog.fields import TIER_FIELDS
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.errors import RefusedError, UsageError
from redline.launch.state import ServerRecord
from redline.ops.bench import BenchJob, bench_regime, boots_of
from redline.ops.events import Event, Measured, ProofEvent, RunSaved, SampleDone
from redline.ops.prepare import UpRequest
from redline.ops.servers import pick_server, target_of
from redline.ops.up import up
from redline.record.run import Run
from redline.settings import Settings
from redline.stats.compare import Verdict, compare_arms
from redline.workload.prompts import PromptClass


@dataclass(frozen=True, slots=True, kw_only=True)
class AbPlan:
    """Two slugs, so many boots an arm, and the difference that does not matter."""

    a: str
    b: str
    boots: int = 3
    margin: float = 0.03
    allowed: frozenset[str] = frozenset()
    overrides: tuple[str, ...] = ()
    timeout_s: float = 600.0
    settle_s: float = 0.0
    beside: bool = False


def abba(boots: int) -> str:
    """Return the order of `boots` boots an arm: A B B A A B B A ..."""
    return "".join("AB" if pair % 2 == 0 else "BA" for pair in range(boots))


def require_comparable(catalog: Catalog, settings: Settings, plan: AbPlan) -> tuple[Difference, ...]:
    """Return in what the two tiers differ.

    Raises:
        RefusedError: in more than what makes them tiers; names it.
        UsageError: both arms are the same tier.
    """
    if plan.a == plan.b:
        raise UsageError("Both arms are the same tier.", next_step="`redline bench --boots 6` shows its own spread.")
    found = differences(*(_conditions(catalog, settings, slug) for slug in (plan.a, plan.b)))
    confounds = confounding(found, plan.allowed)
    if confounds:
        names = "; ".join(str(item) for item in confounds)
        switches = " ".join(f"--allow-difference {item.name}" for item in confounds)
        raise RefusedError(
            f"{plan.a} and {plan.b} differ in more than the tier: {names}. The difference would be measured with it.",
            next_step=f"Set them alike (--set NAME=VALUE), or measure it knowingly: {switches}.",
        )
    return found


def _conditions(catalog: Catalog, settings: Settings, slug: str) -> Mapping[str, Any]:
    tier = resolve(catalog, slug, settings.layers)
    values = {name: getattr(tier, name).value for name in TIER_FIELDS}
    return {**values, "model": tier.key.model, "engine": tier.key.engine, "topology": tier.key.topology}


def bench_ab(
    catalog: Catalog, settings: Settings, run: Run, regime: Regime, plan: AbPlan
) -> Iterator[Event | ProofEvent | ClassVerdict]:
    """Yield every step and sample, then a verdict a class. The last boot keeps running.

    Raises:
        RefusedError: the arms are confounded; nothing was stopped or started.
        RedlineError: a boot of an arm failed.
    """
    found = require_comparable(catalog, settings, plan)
    samples: dict[str, list[BenchSample]] = {"A": [], "B": []}
    for arm in abba(plan.boots):
        slug = plan.a if arm == "A" else plan.b
        yield from _fresh(catalog, settings, slug, plan)
        _, record = pick_server(settings, slug)
        model = catalog.models[catalog.tiers[record.slug].model]
        run.append(arm_boot(arm, slug, record))
        job = BenchJob(
            target=target_of(record, settings),
            boot_id=record.server_id,
            thinking_switch=model.capabilities.thinking.offered,
            prefill=False,
            timeout_s=plan.timeout_s,
            settle_s=plan.settle_s,
        )
        for event in bench_regime(job, run, regime):
            if isinstance(event, SampleDone):
                samples[arm].append(event.sample)
            if not isinstance(event, Measured):
                yield event
    for kind in regime.classes:
        verdict = class_verdict(samples, kind, regime, plan, found)
        if verdict is not None:
            run.append(verdict)
            yield verdict


def arm_boot(arm: str, slug: str, record: ServerRecord) -> ArmBoot:
    """Return what is recorded of a boot of an arm that redline started."""
    return ArmBoot(
        arm=arm,
        slug=slug,
        boot_id=record.server_id,
        engine=record.engine,
        engine_version=record.engine_version,
    )


def _fresh(catalog: Catalog, settings: Settings, slug: str, plan: AbPlan) -> Iterator[Event]:
    """Yield the steps to a new boot of a tier: a server that already runs it is stopped first."""
    from redline.launch.server import running_servers
    from redline.launch.stop import stop

    for folder, record in running_servers(settings.servers_dir):
        if record.slug == slug:
            yield stop(folder, record)
    for event in up(catalog, settings, UpRequest(slug=slug, overrides=plan.overrides, measure=False)):
        if not isinstance(event, RunSaved):
            yield event


def class_verdict(
    samples: Mapping[str, list[BenchSample]],
    kind: PromptClass,
    regime: Regime,
    plan: AbPlan,
    found: tuple[Difference, ...],
) -> ClassVerdict | None:
    """Return the verdict of a class, None where an arm has no rate in it."""
    arms = [boots_of(samples[arm], kind) for arm in "AB"]
    if not all(arms):
        return None
    return ClassVerdict(
        regime=regime.name,
        prompt_class=kind,
        a=plan.a,
        b=plan.b,
        comparison=compare_arms(*arms, higher_is_better=True, margin=plan.margin),
        differences=tuple(str(item) for item in found),
    )


def settled(verdicts: list[ClassVerdict]) -> bool:
    """Whether every class has a verdict that says something."""
    return bool(verdicts) and all(row.comparison.verdict is not Verdict.UNDETERMINED for row in verdicts)
