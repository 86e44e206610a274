"""What a guard says: an id, what is wrong, what to do, where that is known from, and the switch that overrides it."""

from dataclasses import dataclass
from enum import StrEnum

from redline.errors import RefusedError


class Severity(StrEnum):
    """How far a finding goes."""

    REFUSE = "refuse"
    WARN = "warn"
    NOTE = "note"


class Override(StrEnum):
    """The switches that lift a refusal. A rule about what an engine cannot do has none."""

    ALLOW_EXPERIMENTAL = "--allow-experimental"
    IGNORE_VRAM = "--ignore-vram"
    IGNORE_HARDWARE = "--ignore-hardware"
    IGNORE_INTEGRITY = "--ignore-integrity"
    EXPERIMENT = "--experiment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One guard's word on one plan. `override` is the exact switch, `--experiment RULE` with the rule's id."""

    rule_id: str
    severity: Severity
    message: str
    remedy: str
    source: str
    versions: str = "all"
    override: str | None = None
    overridden: bool = False


def is_experiment(finding: Finding) -> bool:
    """Whether a rule was broken on purpose as an experiment, so that every later result must be labelled."""
    return finding.overridden and (finding.override or "").startswith(Override.EXPERIMENT)


class GuardRefusal(RefusedError):  # noqa: N818 -- a refusal is a verdict, told as one
    """Guards refused; `findings` holds every word they said, refusals and warnings."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        refusals = [finding for finding in findings if finding.severity is Severity.REFUSE]
        super().__init__(
            "; ".join(finding.message for finding in refusals),
            next_step=refusals[0].remedy,
            details=tuple(finding.rule_id for finding in refusals),
        )
        self.findings = findings
