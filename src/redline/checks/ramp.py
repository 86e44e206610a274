"""The ramp: an agent at work for twelve turns, results small and large mixed, scaled to the server's context.

What the first token costs is fitted to the tokens that are new in a turn and to all tokens before it: a server that
reuses its cache pays for the new ones, one that does not for all of them. Knows no terminal.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from redline.checks.check import CheckResult, CheckStatus
from redline.checks.talk import Spoken, Voice, hold
from redline.errors import InconclusiveError
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.memory import ServerMemory
from redline.record.event import payload
from redline.stats.regression import Coefficient, LinearFit, least_squares
from redline.workload.conversations import Script
from redline.workload.sessions import agentic_ramp

# An old token that costs under a quarter of a new one was reused; over three quarters it was computed again.
_REUSED_BELOW: Final = 0.25
_ANEW_ABOVE: Final = 0.75
_MIN_TURNS: Final = 8


class Reuse(StrEnum):
    """What is established about the cache."""

    REUSED = "reused"
    PARTIAL = "partly reused"
    ANEW = "computed anew"
    UNDETERMINED = "undetermined"


@payload("ramp.plan")
@dataclass(frozen=True, slots=True, kw_only=True)
class RampPlan:
    """What a ramp is to do: so many sessions of twelve turns, each of its own content."""

    sessions: int = 2
    seed: int = 1
    context_tokens: int
    timeout_s: float = 300.0

    def script(self, session: int) -> Script:
        """Return the content of a session.

        Raises:
            InconclusiveError: the server's context cannot hold one.
        """
        try:
            return agentic_ramp(f"{self.seed}/{session}", self.context_tokens)
        except ValueError as error:
            raise InconclusiveError(
                f"The ramp does not fit this server: {error}.", next_step="Give the server a larger context (--ctx)."
            ) from None


@payload("ramp.turn")
@dataclass(frozen=True, slots=True, kw_only=True)
class RampTurn:
    """One turn. `new_tokens` are those that the turn before did not have; None where the server does not count."""

    session: int
    turn: int
    prompt_tokens: int | None
    new_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    ttft_s: float | None
    decode_tok_s: float | None
    wall_s: float
    called: bool
    error: str | None


@payload("ramp.summary")
@dataclass(frozen=True, slots=True, kw_only=True)
class RampSummary:
    """The verdict with what it rests on. Costs in seconds a token; `cached_share` is what the server itself says."""

    turns: int
    reuse: Reuse
    new_cost: Coefficient | None
    old_cost: Coefficient | None
    r_squared: float | None
    cached_share: float | None
    results: tuple[CheckResult, ...]


async def run_ramp(
    client: Client, plan: RampPlan, voice: Voice, memory: ServerMemory, *, first_session: int = 0
) -> AsyncIterator[RampTurn]:
    """Yield each turn; a session ends with its first failed one."""
    for session in range(first_session, plan.sessions):
        before = 0
        async for spoken in hold(client, plan.script(session), voice, memory):
            turn = turn_of(session, spoken, before)
            before = turn.prompt_tokens or before
            yield turn


def turn_of(session: int, spoken: Spoken, before_tokens: int) -> RampTurn:
    """Return what is recorded of a turn whose predecessor had a prompt of `before_tokens`."""
    exchange = spoken.exchange
    prompt, failed = exchange.usage.prompt_tokens, exchange.error is not None
    return RampTurn(
        session=session,
        turn=spoken.index,
        prompt_tokens=prompt,
        new_tokens=None if prompt is None else max(0, prompt - before_tokens),
        cached_tokens=exchange.usage.cached_tokens,
        completion_tokens=exchange.usage.completion_tokens,
        ttft_s=None if failed else ttft_s(exchange),
        decode_tok_s=None if failed else decode_tok_s(exchange),
        wall_s=spoken.seconds,
        called=bool(exchange.tool_calls),
        error=f"{exchange.error.kind.value}: {exchange.error.message}" if exchange.error else None,
    )


def judge_ramp(turns: Sequence[RampTurn]) -> RampSummary:
    """Return what the turns establish."""
    fit = _fit(turns)
    share = _cached_share(turns)
    reuse, words = _judge(fit, share)
    status = {
        Reuse.REUSED: CheckStatus.PASS,
        Reuse.PARTIAL: CheckStatus.WARN,
        Reuse.ANEW: CheckStatus.FAIL,
        Reuse.UNDETERMINED: CheckStatus.INCONCLUSIVE,
    }[reuse]
    new, total = (fit.coefficients["new"], fit.coefficients["total"]) if fit else (None, None)
    return RampSummary(
        turns=len(turns),
        reuse=reuse,
        new_cost=new,
        old_cost=total,
        r_squared=fit.r_squared if fit else None,
        cached_share=share,
        results=(_errors(turns), _result("ramp.cache_reuse", status, words, "per-turn re-prefill")),
    )


def _fit(turns: Sequence[RampTurn]) -> LinearFit | None:
    rows = [
        (float(turn.new_tokens), float(turn.prompt_tokens), turn.ttft_s)
        for turn in turns
        if turn.new_tokens is not None and turn.prompt_tokens is not None and turn.ttft_s is not None
    ]
    if len(rows) < _MIN_TURNS:
        return None
    try:
        return least_squares(
            {"new": [row[0] for row in rows], "total": [row[1] for row in rows]}, [row[2] for row in rows]
        )
    except ValueError:
        return None


def _cached_share(turns: Sequence[RampTurn]) -> float | None:
    """Return the share of old tokens that the server says it took from its cache; None where it does not say."""
    rows = [
        (turn.cached_tokens, turn.prompt_tokens - turn.new_tokens)
        for turn in turns
        if turn.cached_tokens is not None and turn.prompt_tokens is not None and turn.new_tokens is not None
    ]
    old = sum(row[1] for row in rows)
    return min(1.0, sum(row[0] for row in rows) / old) if old else None


def _judge(fit: LinearFit | None, share: float | None) -> tuple[Reuse, str]:
    """By what the first token costs; the server's own count is named beside it, and where they contradict.

    The cost of an old token is that of one more token in all; a new one costs this and its own coefficient.
    """
    said = "the server does not report cached tokens" if share is None else f"the server reports {share:.0%} cached"
    if fit is None:
        return Reuse.UNDETERMINED, f"too few turns with a first token and token counts; {said}"
    old, new = fit.coefficients["total"], fit.coefficients["new"]
    whole = old.value + new.value
    if whole <= 0:
        return Reuse.UNDETERMINED, f"the time to first token does not grow with the tokens; {said}"
    ratio, high, low = old.value / whole, old.high / whole, old.low / whole
    words = f"an old token costs {max(0.0, ratio):.0%} of a new one ({1000 * whole:.3f} ms); {said}"
    if high < _REUSED_BELOW:
        found = Reuse.REUSED
    elif low > 0 and ratio > _ANEW_ABOVE:
        found = Reuse.ANEW
    elif low > _REUSED_BELOW and high < _ANEW_ABOVE:
        found = Reuse.PARTIAL
    else:
        return Reuse.UNDETERMINED, f"{words}; the interval ({low:.0%} to {high:.0%}) decides nothing"
    contradicts = share is not None and ((found is Reuse.REUSED) != (share > 0.5)) and found is not Reuse.PARTIAL
    return found, f"{found.value}: {words}{'; the two contradict each other' if contradicts else ''}"


def _errors(turns: Sequence[RampTurn]) -> CheckResult:
    errors = [turn for turn in turns if turn.error]
    if errors:
        words = f"{len(errors)} of {len(turns)} turns failed; first: {errors[0].error}"
        return _result("ramp.errors", CheckStatus.FAIL, words, "accumulated-turn failure")
    if not turns:
        return _result("ramp.errors", CheckStatus.INCONCLUSIVE, "no turn was completed", "accumulated-turn failure")
    longest = max((turn.prompt_tokens or 0 for turn in turns), default=0)
    words = f"no error in {len(turns)} turns, up to {longest or 'an unknown number of'} tokens of prompt"
    return _result("ramp.errors", CheckStatus.PASS, words, "accumulated-turn failure")


def _result(check_id: str, status: CheckStatus, message: str, kind: str) -> CheckResult:
    return CheckResult(check_id=check_id, title=check_id, status=status, message=message, failure_class=kind)
