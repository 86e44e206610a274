"""What the turns of a soak add up to: errors, empty answers by cause, and the trends of memory, rate and acceptance.

A verdict says what was observed and bounds what was not: no failure in n turns puts the rate of failures below a bound,
and never at nought. Too few sessions for a trend are inconclusive, not well.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from redline.checks.check import CheckResult, CheckStatus, SkipReason
from redline.checks.soak import EMPTY, Outcome, SoakDied, SoakTurn
from redline.record.event import payload
from redline.stats.failures import FailureRate, failure_rate
from redline.stats.growth import Growth, GrowthVerdict, judge_growth
from redline.stats.retention import Retention, RetentionVerdict, retention
from redline.units import MIB

_GROWTH: Final = {
    GrowthVerdict.GROWING: CheckStatus.FAIL,
    GrowthVerdict.STEPPED: CheckStatus.PASS,
    GrowthVerdict.STEADY: CheckStatus.PASS,
    GrowthVerdict.UNDETERMINED: CheckStatus.INCONCLUSIVE,
}
_RETENTION: Final = {
    RetentionVerdict.RETAINED: CheckStatus.PASS,
    RetentionVerdict.FELL: CheckStatus.FAIL,
    RetentionVerdict.UNDETERMINED: CheckStatus.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakLimits:
    """What a soak is judged by. `growth_floor_mib` keeps a quiet series from failing over a few bytes."""

    growth_worth_mib: float = 20.0
    growth_floor_mib: float = 100.0
    retention_floor: float = 0.8
    acceptance_floor: float = 0.8
    empty_share_fail: float = 0.0  # above this share of turns an empty answer is a failure


@payload("soak.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class SoakSummary:
    """The verdicts with what they rest on. `failures` counts errors and empty answers over all turns."""

    sessions: int
    turns: int
    failures: FailureRate | None
    empty_by_cause: Mapping[str, int] = field(default_factory=dict)
    resident: Growth | None = None
    gpu: Growth | None = None
    rate: Retention | None = None
    rate_by_shape: Mapping[str, Retention] = field(default_factory=dict)
    acceptance: Retention | None = None
    results: tuple[CheckResult, ...] = ()
    statement: str = ""


def judge_soak(
    turns: Sequence[SoakTurn], died: SoakDied | None = None, limits: SoakLimits | None = None
) -> SoakSummary:
    """Return what the turns establish. No turns at all are inconclusive."""
    limits = limits or SoakLimits()
    clean = _clean_sessions(turns)
    resident = _growth(clean, lambda turn: turn.resident_bytes, limits)
    gpu = _growth(clean, lambda turn: turn.gpu_bytes, limits)
    rate, by_shape = _rates(clean, limits)
    drift = _acceptance(clean, limits)
    failed = sum(turn.outcome is not Outcome.ANSWERED for turn in turns)
    failures = failure_rate(failed, len(turns)) if turns else None
    causes = _causes(turns)
    results = (
        _judge_errors(turns, died),
        _judge_empty(turns, causes, limits),
        _judge_memory(resident, gpu),
        _judge_rate(rate, by_shape, turns),
        _judge_acceptance(drift),
    )
    sessions = len({turn.session for turn in turns})
    return SoakSummary(
        sessions=sessions,
        turns=len(turns),
        failures=failures,
        empty_by_cause=causes,
        resident=resident,
        gpu=gpu,
        rate=rate,
        rate_by_shape=by_shape,
        acceptance=drift,
        results=results,
        statement=_statement(sessions, len(turns), failures),
    )


def _statement(sessions: int, turns: int, failures: FailureRate | None) -> str:
    if failures is None:
        return "no turn was completed"
    seen = f"{failures.failures} of {turns} turns in {sessions} sessions failed"
    return f"{seen}; the true rate is at most {failures.upper:.1%} (95 %)"


def _clean_sessions(turns: Sequence[SoakTurn]) -> list[list[SoakTurn]]:
    """Return the sessions without an error, in order: trends are taken of these.

    A baseline taken from a session that crashed once made 32 GiB of growth out of nothing (club-3090#829).
    """
    sessions: dict[int, list[SoakTurn]] = {}
    for turn in turns:
        sessions.setdefault(turn.session, []).append(turn)
    whole = max((len(session) for session in sessions.values()), default=0)
    return [
        session
        for session in sessions.values()
        if len(session) == whole and all(turn.outcome is not Outcome.ERROR for turn in session)
    ]


def _growth(
    sessions: Sequence[Sequence[SoakTurn]], value: Callable[[SoakTurn], int | None], limits: SoakLimits
) -> Growth | None:
    """Return the trend of each session's highest level in MiB, over the sessions of the last process that served."""
    process = sessions[-1][-1].process if sessions else None
    levels = [
        max(found) / MIB
        for session in sessions
        if session[-1].process == process and (found := [v for turn in session if (v := value(turn)) is not None])
    ]
    if not levels:
        return None
    return judge_growth(levels, worth=limits.growth_worth_mib, floor=limits.growth_floor_mib)


def _rates(
    sessions: Sequence[Sequence[SoakTurn]], limits: SoakLimits
) -> tuple[Retention | None, Mapping[str, Retention]]:
    """Return the retention of decode rates, over all shapes and of each.

    Answers differ in length, so not every turn has a rate. A session counts by how far its turns are from the level of
    their shapes, on logarithms: one that lacks a shape is not left out for it.
    """
    rows = [{turn.shape: math.log(turn.decode_tok_s) for turn in session if turn.decode_tok_s} for session in sessions]
    series: dict[str, list[float]] = {}
    for row in rows:
        for shape, rate in row.items():
            series.setdefault(shape, []).append(rate)
    level = {shape: fmean(rates) for shape, rates in series.items()}
    gaps = [fmean(rate - level[shape] for shape, rate in row.items()) for row in rows if row]
    if not gaps:
        return None, {}
    floor = limits.retention_floor
    by_shape = {shape: retention([math.exp(rate) for rate in rates], floor=floor) for shape, rates in series.items()}
    return retention([math.exp(gap) for gap in gaps], floor=floor), by_shape


def _acceptance(sessions: Sequence[Sequence[SoakTurn]], limits: SoakLimits) -> Retention | None:
    """Return the retention of tokens a drafted step, session by session; None where nothing was ever drafted."""
    lengths = []
    for session in sessions:
        drafts = sum(turn.drafts or 0 for turn in session)
        if drafts:
            lengths.append(1 + sum(turn.accepted_tokens or 0 for turn in session) / drafts)
    return retention(lengths, floor=limits.acceptance_floor) if lengths else None


def _causes(turns: Sequence[SoakTurn]) -> dict[str, int]:
    """Return empty answers by cause. Without a token only where a grammar was in force: it masked every token."""
    counts = Counter(turn.outcome.value for turn in turns if turn.outcome in EMPTY)
    bare = [turn for turn in turns if turn.outcome is Outcome.EMPTY_NO_TOKENS]
    free = [turn for turn in turns if not turn.constrained]
    if bare and free and all(turn.constrained for turn in bare) and _mostly(turns):
        counts["empty: only where tools or a schema were in force"] = counts.pop(Outcome.EMPTY_NO_TOKENS.value)
    return dict(counts)


def _mostly(turns: Sequence[SoakTurn]) -> bool:
    """Whether answers in force of a grammar are mostly empty, so that the grammar and not chance is the cause."""
    constrained = [turn for turn in turns if turn.constrained]
    return fmean(turn.outcome is Outcome.EMPTY_NO_TOKENS for turn in constrained) > 0.5


def _judge_errors(turns: Sequence[SoakTurn], died: SoakDied | None) -> CheckResult:
    errors = [turn for turn in turns if turn.outcome is Outcome.ERROR]
    first = f"; first: {errors[0].error}" if errors else ""
    processes = list(dict.fromkeys(turn.process for turn in turns if turn.process))
    if died is not None:
        words = f"the server did not come back after session {died.session}, turn {died.turn}: {died.message}"
        return _result("soak.errors", CheckStatus.FAIL, words, "engine died")
    if len(processes) > 1:
        words = f"the server was restarted {len(processes) - 1} times; {len(errors)} turns failed{first}"
        return _result("soak.errors", CheckStatus.FAIL, words, "engine restarted")
    if errors:
        return _result("soak.errors", CheckStatus.FAIL, f"{len(errors)} of {len(turns)} turns failed{first}", "errors")
    if not turns:
        return _result("soak.errors", CheckStatus.INCONCLUSIVE, "no turn was completed", "errors")
    fell = sum(turn.counters_fell for turn in turns)
    note = f"; counters started again {fell} times in one process" if fell else ""
    return _result("soak.errors", CheckStatus.PASS, f"no error in {len(turns)} turns{note}", "errors")


def _judge_empty(turns: Sequence[SoakTurn], causes: Mapping[str, int], limits: SoakLimits) -> CheckResult:
    kind = "silent empty answer"
    if not causes:
        status = CheckStatus.PASS if turns else CheckStatus.INCONCLUSIVE
        return _result("soak.silent_empty", status, "no empty answer", kind)
    words = "; ".join(f"{count} x {cause.removeprefix('empty: ')}" for cause, count in causes.items())
    share = sum(causes.values()) / len(turns)
    # A puzzle with thinking on may use its whole budget for thinking; that alone is a warning.
    harmless = all(turn.thinking for turn in turns if turn.outcome in EMPTY) and Outcome.EMPTY_REASONING.value in causes
    status = CheckStatus.WARN if harmless or share <= limits.empty_share_fail else CheckStatus.FAIL
    return _result("soak.silent_empty", status, f"{share:.0%} of turns empty: {words}", kind)


def _judge_memory(resident: Growth | None, gpu: Growth | None) -> CheckResult:
    kind = "memory leak"
    known = {name: growth for name, growth in (("host", resident), ("GPU", gpu)) if growth is not None}
    if not known:
        words = "the server's processes cannot be seen from here"
        return _skip("soak.trend.memory", words, kind)
    statuses = [_GROWTH[growth.verdict] for growth in known.values()]
    worst = next((s for s in (CheckStatus.FAIL, CheckStatus.INCONCLUSIVE) if s in statuses), CheckStatus.PASS)
    words = "; ".join(f"{name} memory {_growth_words(growth)}" for name, growth in known.items())
    metrics = {
        f"{name.lower()}_slope_mib_a_session": growth.slope.value for name, growth in known.items() if growth.slope
    }
    return _result("soak.trend.memory", worst, words, kind, metrics)


def _growth_words(growth: Growth) -> str:
    slope = growth.slope
    interval = f" ({slope.low:+.1f} to {slope.high:+.1f})" if slope and slope.low is not None and slope.high else ""
    number = f": {slope.value:+.1f}{interval} MiB a session" if slope else ""
    return f"{growth.verdict.value}{number}; {growth.reason}"


def _judge_rate(rate: Retention | None, by_shape: Mapping[str, Retention], turns: Sequence[SoakTurn]) -> CheckResult:
    kind = "slow-down"
    if rate is None:
        return _result("soak.trend.rate", CheckStatus.INCONCLUSIVE, f"no decode rate: {_why_no_rate(turns)}", kind)
    worst = min(
        (found for found in by_shape.items() if found[1].ratio is not None),
        key=lambda item: item[1].ratio or 0.0,
        default=None,
    )
    tail = f"; lowest shape {worst[0]} {worst[1].ratio:.2f}" if worst else ""
    return _result("soak.trend.rate", _RETENTION[rate.verdict], _retention_words(rate) + tail, kind, _ratio(rate))


def _why_no_rate(turns: Sequence[SoakTurn]) -> str:
    answered = [turn for turn in turns if turn.outcome is Outcome.ANSWERED]
    if answered and all(turn.completion_tokens is None for turn in answered):
        return "the server gives no token counts"
    if answered and all(turn.completion_tokens == 0 for turn in answered):
        return "the server counts 0 tokens beside text"
    return "no answer was long enough"


def _judge_acceptance(drift: Retention | None) -> CheckResult:
    kind = "acceptance collapse"
    if drift is None:
        return _skip("soak.trend.acceptance", "the engine counts no drafting", kind, SkipReason.NOT_OFFERED)
    words = f"tokens a drafted step: {_retention_words(drift)}"
    return _result("soak.trend.acceptance", _RETENTION[drift.verdict], words, kind, _ratio(drift))


def _retention_words(found: Retention) -> str:
    if found.ratio is None:
        return found.reason
    interval = f" ({found.low:.2f} to {found.high:.2f})" if found.low is not None and found.high is not None else ""
    reason = f"{found.reason} of {found.floor:g}" if found.reason.endswith("floor") else found.reason
    return f"last third at {found.ratio:.2f}{interval} of the first; {reason}"


def _ratio(found: Retention) -> dict[str, float]:
    return {} if found.ratio is None else {"ratio": found.ratio}


def _result(
    check_id: str, status: CheckStatus, message: str, kind: str, metrics: Mapping[str, float] | None = None
) -> CheckResult:
    return CheckResult(
        check_id=check_id,
        title=check_id,
        status=status,
        message=message,
        failure_class=kind,
        metrics=dict(metrics or {}),
    )


def _skip(check_id: str, message: str, kind: str, reason: SkipReason = SkipReason.UNMET) -> CheckResult:
    return CheckResult(
        check_id=check_id,
        title=check_id,
        status=CheckStatus.SKIP,
        message=message,
        failure_class=kind,
        skip_reason=reason,
    )
