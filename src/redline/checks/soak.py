"""The soak: sessions of unique content, one after another, for so many turns or minutes. Says what each turn gave.

What the turns add up to is `soak_verdict`.
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from redline.checks.talk import Spoken, Voice, hold, revived
from redline.errors import InconclusiveError
from redline.probe.client import Client
from redline.probe.definitions import decode_tok_s, ttft_s
from redline.probe.exchange import ErrorKind, Exchange
from redline.probe.memory import ServerMemory
from redline.record.event import payload
from redline.workload.conversations import Script
from redline.workload.sessions import fresh_session, growing_session

TURNS_A_SESSION: Final = 5


class SessionKind(StrEnum):
    """One conversation that grows, or five that stand alone."""

    GROWING = "growing"
    FRESH = "fresh"


class Outcome(StrEnum):
    """What a turn gave. The empty ones are answers with status 200 that hold nothing a user could read or run."""

    ANSWERED = "answered"
    EMPTY_REASONING = "empty: the budget went into reasoning"
    EMPTY_AFTER_REASONING = "empty: stopped after reasoning"
    EMPTY_NO_TOKENS = "empty: stopped without a token"
    EMPTY_CLOSED = "empty: the stream closed without a finish"
    ERROR = "error"


EMPTY: Final = frozenset(
    {Outcome.EMPTY_REASONING, Outcome.EMPTY_AFTER_REASONING, Outcome.EMPTY_NO_TOKENS, Outcome.EMPTY_CLOSED}
)


@payload("soak.plan")
@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """What a soak is to do. It ends after `turns` turns or `minutes` minutes, at the end of a session."""

    kind: SessionKind = SessionKind.GROWING
    turns: int | None = 60
    minutes: float | None = None
    seed: int = 1
    context_tokens: int
    timeout_s: float = 300.0
    revive_s: float = 20.0  # how long a server that broke off may take to come back

    def over(self, turns: int, seconds: float) -> bool:
        """Whether a soak of so many turns and seconds is done."""
        if self.minutes is not None:
            return seconds >= 60 * self.minutes
        return turns >= (self.turns or 0)

    def script(self, session: int) -> Script:
        """Return the content of a session.

        Raises:
            InconclusiveError: the server's context cannot hold one.
        """
        make = growing_session if self.kind is SessionKind.GROWING else fresh_session
        try:
            return make(str(self.seed), session, self.context_tokens)
        except ValueError as error:
            raise InconclusiveError(
                f"A {self.kind.value} session does not fit this server: {error}.",
                next_step="Give the server a larger context (--ctx), or use `soak --kind fresh`.",
            ) from None


@payload("soak.turn")
@dataclass(frozen=True, slots=True, kw_only=True)
class SoakTurn:
    """One turn. Rates in tokens a second, times in seconds; None where the definition gives no value."""

    session: int
    turn: int
    shape: str
    outcome: Outcome
    constrained: bool
    thinking: bool
    finish_reason: str | None
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    decode_tok_s: float | None
    ttft_s: float | None
    wall_s: float
    drafts: int | None
    draft_tokens: int | None
    accepted_tokens: int | None
    resident_bytes: int | None
    gpu_bytes: int | None
    process: str | None
    counters_fell: bool
    invented_calls: int
    repaired_calls: int
    error: str | None


@payload("soak.died")
@dataclass(frozen=True, slots=True, kw_only=True)
class SoakDied:
    """The server did not come back after this turn."""

    session: int
    turn: int
    message: str


async def run_soak(
    client: Client, plan: SoakPlan, voice: Voice, memory: ServerMemory, *, first_session: int = 0, spent_s: float = 0.0
) -> AsyncIterator[SoakTurn | SoakDied]:
    """Yield each turn until the plan is fulfilled or the server is gone for good."""
    session, started = first_session, time.monotonic() - spent_s
    turns = first_session * TURNS_A_SESSION
    while not plan.over(turns, time.monotonic() - started):
        async for spoken in hold(client, plan.script(session), voice, memory):
            yield turn_of(session, spoken)
            if not await revived(client, spoken.exchange, plan.revive_s):
                error = spoken.exchange.error
                yield SoakDied(session=session, turn=spoken.index, message=error.message if error else "no answer")
                return
        session, turns = session + 1, turns + TURNS_A_SESSION


def turn_of(session: int, spoken: Spoken) -> SoakTurn:
    """Return what is recorded of a turn."""
    exchange, drafting, process = spoken.exchange, spoken.drafting, spoken.memory.process
    failed = exchange.error is not None
    return SoakTurn(
        session=session,
        turn=spoken.index,
        shape=spoken.turn.shape,
        outcome=outcome_of(exchange),
        constrained=bool(spoken.transcript.tools) and spoken.turn.tool_choice != "none",
        thinking=bool(spoken.turn.thinking),
        finish_reason=exchange.finish_reason,
        prompt_tokens=exchange.usage.prompt_tokens,
        cached_tokens=exchange.usage.cached_tokens,
        completion_tokens=exchange.usage.completion_tokens,
        decode_tok_s=None if failed else decode_tok_s(exchange),
        ttft_s=None if failed else ttft_s(exchange),
        wall_s=spoken.seconds,
        drafts=drafting.drafts if drafting else None,
        draft_tokens=drafting.draft_tokens if drafting else None,
        accepted_tokens=drafting.accepted_tokens if drafting else None,
        resident_bytes=spoken.memory.resident_bytes,
        gpu_bytes=spoken.memory.gpu_bytes,
        process=f"{process.pid}/{process.start_ticks}" if process else None,
        counters_fell=spoken.counters_fell,
        invented_calls=spoken.transcript.invented,
        repaired_calls=spoken.transcript.repaired,
        error=f"{exchange.error.kind.value}: {exchange.error.message}" if exchange.error else None,
    )


def outcome_of(exchange: Exchange) -> Outcome:
    """Return what an answer is: one with content or a call, one without and why, or an error."""
    given = bool(exchange.content.strip() or exchange.tool_calls)
    closed = exchange.error is not None and exchange.error.kind in (ErrorKind.TRUNCATED, ErrorKind.PROTOCOL)
    if closed and exchange.headers_ns is not None and not exchange.chunks and exchange.finish_reason is None:
        assert exchange.error is not None
        return Outcome.EMPTY_CLOSED if exchange.error.status is None else Outcome.ERROR
    if exchange.error is not None:
        return Outcome.ERROR
    if given:
        return Outcome.ANSWERED
    if exchange.finish_reason == "length" and exchange.reasoning:
        return Outcome.EMPTY_REASONING
    if exchange.reasoning:
        return Outcome.EMPTY_AFTER_REASONING
    return Outcome.EMPTY_NO_TOKENS
