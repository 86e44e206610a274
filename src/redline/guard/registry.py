"""Where guards are kept and how they are run. Knows no rule itself.

All guards run every time, so that a user sees every reason at once instead of one after another.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Severity

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


def experiment(rule_id: str) -> str:
    """Return the switch that lifts one rule as a labelled experiment."""
    return f"--experiment {rule_id}"
