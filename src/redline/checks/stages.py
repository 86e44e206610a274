"""The stages of a whole report: which there are, in which order, and how each ended. Knows no server and no terminal.

A stage that came to its end has a verdict, and that verdict stands: asking again until the answer is better would be
choosing. A stage that broke off has none, and is gone through again when the report is gone on with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from redline.errors import ExitCode
from redline.record.event import payload


class Stage(StrEnum):
    """One stage. `smoke` and `quick` are the short forms of `verify` and `bench`."""

    SMOKE = "smoke"
    VERIFY = "verify"
    STRESS = "stress"
    SOAK = "soak"
    BENCH = "bench"
    QUICK = "quick"
    RAMP = "ramp"


# Cheap before dear: what fails early says that the rest need not be waited for; the bench finds a server that worked.
FULL: Final = (Stage.VERIFY, Stage.STRESS, Stage.SOAK, Stage.BENCH, Stage.RAMP)
SHORT: Final = (Stage.SMOKE, Stage.QUICK)


class StageState(StrEnum):
    """How a stage ended. Passed, failed and open are verdicts; the others are none."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    BROKEN = "broken"
    INTERRUPTED = "interrupted"
    NOT_RUN = "not_run"


SETTLED: Final = frozenset({StageState.PASSED, StageState.FAILED, StageState.OPEN})


@payload("stages.plan")
@dataclass(frozen=True, slots=True, kw_only=True)
class StagesPlan:
    """What a report goes through on one life of one server. `process` is that life where it can be seen.

    The soak ends after `soak_minutes` where they are given, else after `soak_turns`.
    """

    stages: tuple[Stage, ...]
    soak_turns: int = 50
    soak_minutes: float | None = None
    ramp_sessions: int = 2
    timeout_s: float = 300.0
    process: str | None = None
    resumes: str | None = None


@payload("stages.began")
@dataclass(frozen=True, slots=True, kw_only=True)
class StageBegan:
    """A stage begins, and is recorded as a run of its own."""

    stage: Stage
    run_id: str


@payload("stages.ended")
@dataclass(frozen=True, slots=True, kw_only=True)
class StageEnded:
    """How a stage ended. `earlier` names the report that it was gone through for, where that was another one."""

    stage: Stage
    state: StageState
    reason: str
    run_id: str | None = None
    exit_code: int | None = None
    seconds: float = 0.0
    earlier: str | None = None


def state_of(code: ExitCode) -> StageState:
    """Return the state of a stage that came to its end with an exit code."""
    return {
        ExitCode.DONE: StageState.PASSED,
        ExitCode.CHECK_FAILED: StageState.FAILED,
        ExitCode.INCONCLUSIVE: StageState.OPEN,
    }.get(code, StageState.BROKEN)


def verdict_of_stages(ended: Iterable[StageEnded]) -> ExitCode:
    """Return what stages mean together: one that failed outweighs a gap, and a gap outweighs what passed."""
    states = {row.state for row in ended}
    if StageState.FAILED in states:
        return ExitCode.CHECK_FAILED
    return ExitCode.DONE if states == {StageState.PASSED} else ExitCode.INCONCLUSIVE


def remaining_s(
    stages: Sequence[Stage], ended: Sequence[Stage], share: float, elapsed_s: float, usual_s: dict[Stage, float]
) -> float | None:
    """Return the seconds that are left, or None where nobody knows.

    The running stage is the first that has not ended; it is through with `share` of its work after `elapsed_s`. The
    others take what they took before on such a server (`usual_s`).
    """
    left = [stage for stage in stages if stage not in ended]
    if not left:
        return 0.0
    running, *waiting = left
    own = stage_left_s(share, elapsed_s, usual_s.get(running))
    known = [usual_s.get(stage) for stage in waiting]
    if own is None or any(value is None for value in known):
        return None
    return own + sum(value for value in known if value is not None)


def stage_left_s(share: float, elapsed_s: float, usual_s: float | None) -> float | None:
    """Return what is left of one stage: by its own pace once a fifth is done, before that by what it usually takes."""
    if share > 0.2 or (share > 0 and usual_s is None):
        return elapsed_s * (1 - share) / share
    return None if usual_s is None else max(0.0, usual_s - elapsed_s)
