"""The guards and how they are run. Each looks at one `GuardContext` and returns a finding or nothing.

All guards run every time, so that a user sees every reason at once instead of one after another.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from redline.catalog.fields import STATUSES_SERVED_FREELY, ResolvedTier
from redline.catalog.types import Catalog
from redline.guard.finding import Finding, Override, Severity
from redline.plan.types import FitPlan, Verdict
from redline.rig.types import Rig

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardContext:
    """All that a guard may look at. `port_holder` is who holds the port, in words, or None when it is free."""

    catalog: Catalog
    tier: ResolvedTier
    rig: Rig
    fit: FitPlan
    port_holder: str | None = None
    api_key_given: bool = False


Guard = Callable[[GuardContext], Finding | None]
_GUARDS: dict[str, Guard] = {}


def guard(rule_id: str) -> Callable[[Guard], Guard]:
    """Register a guard under its id.

    Raises:
        ValueError: the id is taken.
    """

    def register(function: Guard) -> Guard:
        if rule_id in _GUARDS:
            raise ValueError(f"guard {rule_id} is registered twice")
        _GUARDS[rule_id] = function
        return function

    return register


def run_guards(context: GuardContext, overrides: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return every finding; a refusal whose switch is among `overrides` comes back as a warning, marked so."""
    findings = []
    for function in _GUARDS.values():
        finding = function(context)
        if finding is None:
            continue
        if finding.severity is Severity.REFUSE and finding.override in overrides:
            finding = replace(finding, severity=Severity.WARN, overridden=True)
        findings.append(finding)
    return tuple(findings)


def guard_ids() -> tuple[str, ...]:
    """Return the ids of all guards, in the order they run."""
    return tuple(_GUARDS)


@guard("tier-status")
def _tier_status(context: GuardContext) -> Finding | None:
    status, note = context.tier.status.value, context.tier.status_note.value
    if status in STATUSES_SERVED_FREELY:
        return None
    return Finding(
        rule_id="tier-status",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} is {status}{f': {note}' if note else ''}.",
        remedy="Choose a tier of status production or caveats, or accept that this one is not proven.",
        source=context.tier.status.origin,
        override=Override.ALLOW_EXPERIMENTAL,
    )


@guard("context-max")
def _context_max(context: GuardContext) -> Finding | None:
    model = context.catalog.models[context.tier.key.model]
    asked = context.tier.max_model_len
    if asked.value <= model.context_max:
        return None
    return Finding(
        rule_id="context-max",
        severity=Severity.REFUSE,
        message=f"A context of {asked.value} ({asked.origin}) is more than {model.title} was trained for, "
        f"{model.context_max}. It would load, and answer nonsense beyond that.",
        remedy=f"Use MAX_MODEL_LEN={model.context_max} or less.",
        source=model.source,
    )


@guard("spec-depth")
def _spec_depth(context: GuardContext) -> Finding | None:
    drafter = context.catalog.drafters[context.tier.drafter.value]
    depth = context.tier.spec_n
    if drafter.kind != "none" or depth.value == 0:
        return None
    return Finding(
        rule_id="spec-depth",
        severity=Severity.REFUSE,
        message=f"SPEC_N={depth.value} ({depth.origin}) asks for drafting, and {context.tier.slug} has no drafter.",
        remedy="Leave SPEC_N out, or choose a tier of depth super.",
        source=context.tier.drafter.origin,
    )


@guard("memory-fit")
def _memory_fit(context: GuardContext) -> Finding | None:
    fit = context.fit
    if fit.verdict is Verdict.FIT:
        return None
    first = f" {fit.suggestions[0].change} would give {fit.suggestions[0].cost}." if fit.suggestions else ""
    words = {
        Verdict.NO: "does not fit",
        Verdict.TIGHT: "fits with little to spare",
        Verdict.UNKNOWN: "cannot be planned",
    }[fit.verdict]
    return Finding(
        rule_id="memory-fit",
        severity=Severity.REFUSE if fit.verdict is Verdict.NO else Severity.WARN,
        message=f"{context.tier.slug} {words} here: {'; '.join(fit.reasons)}.",
        remedy=f"Free memory, or use a smaller context.{first}",
        source="redline plan",
        override=Override.IGNORE_VRAM if fit.verdict is Verdict.NO else None,
    )


@guard("gpu-count")
def _gpu_count(context: GuardContext) -> Finding | None:
    topology = context.catalog.topologies[context.tier.key.topology]
    have = len(context.rig.gpus)
    if have >= topology.gpus:
        return None
    return Finding(
        rule_id="gpu-count",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} needs {topology.gpus} GPU(s) and this machine shows {have}.",
        remedy="Choose a tier that fits (`redline tiers`), or run this on the machine with the GPUs.",
        source="nvidia-smi",
        override=Override.IGNORE_HARDWARE,
    )


@guard("port-taken")
def _port_taken(context: GuardContext) -> Finding | None:
    if context.port_holder is None:
        return None
    port = context.tier.port.value
    return Finding(
        rule_id="port-taken",
        severity=Severity.REFUSE,
        message=f"Port {port} is held by {context.port_holder}.",
        remedy="Stop that program, or give another port: --port N (or PORT=N).",
        source="the sockets of this machine",
    )


@guard("open-address")
def _open_address(context: GuardContext) -> Finding | None:
    host = context.tier.bind_host
    if host.value in LOOPBACK or context.api_key_given:
        return None
    return Finding(
        rule_id="open-address",
        severity=Severity.REFUSE,
        message=f"BIND_HOST={host.value} ({host.origin}) would let anyone who reaches this machine use the server.",
        remedy="Set REDLINE_API_KEY in the environment or the config file, or stay on 127.0.0.1.",
        source="llama.cpp warns of the same at start: no API key is set",
    )
