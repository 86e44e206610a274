"""A scripted conversation held with a server, turn by turn, with what was counted and held around each answer.

Soak and ramp share it. Knows no verdict: an answer that fails is a turn like any other.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from redline.catalog.types import Model
from redline.engine.counters import Acceptance, acceptance, counters_delta
from redline.probe.client import Client
from redline.probe.exchange import ChatRequest, ErrorKind, Exchange
from redline.probe.memory import MemorySample, ServerMemory
from redline.workload.conversations import Script, Transcript, Turn

_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One turn as it went: what was asked and answered, what the counters and the memory said around it."""

    index: int
    turn: Turn
    exchange: Exchange
    transcript: Transcript
    drafting: Acceptance | None
    counters_fell: bool
    memory: MemorySample
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How turns are sent: what the model is known to offer, the seed, and how long an answer may take."""

    model: Model | None
    seed: int
    timeout_s: float

    @property
    def tools(self) -> bool:
        """Whether tools are offered; an unknown model is taken to have them."""
        return self.model is None or self.model.capabilities.tools.offered

    @property
    def thinking(self) -> bool:
        """Whether the switch for thinking is sent; an unknown model gets it."""
        return self.model is None or self.model.capabilities.thinking.offered

    def request(self, transcript: Transcript, turn: Turn) -> ChatRequest:
        """Return the request of a turn."""
        extra: list[tuple[str, object]] = []
        if transcript.tools:
            extra += [("tools", list(transcript.tools)), ("tool_choice", turn.tool_choice)]
        if self.thinking and turn.thinking is not None:
            extra.append(("chat_template_kwargs", {"enable_thinking": turn.thinking}))
        return ChatRequest(
            messages=transcript.messages,
            max_tokens=turn.max_tokens,
            temperature=turn.temperature,
            seed=self.seed,
            extra=tuple(extra),
        )


async def hold(client: Client, script: Script, voice: Voice, memory: ServerMemory) -> AsyncIterator[Spoken]:
    """Yield the turns of a session as they are answered; a growing one ends with its first failed turn."""
    if script.tools and not voice.tools:
        script = script.without_tools()
    transcript = script.start()
    for index, turn in enumerate(script.turns):
        transcript = (transcript if script.grows else script.start(index)).asked(turn)
        before, started = await client.counters(), time.monotonic()
        exchange = await client.chat(voice.request(transcript, turn), timeout_s=voice.timeout_s)
        seconds = time.monotonic() - started
        after = await client.counters()
        delta = counters_delta(before, after) if before and after else None
        calls = [(call.name, call.arguments) for call in exchange.tool_calls]
        transcript = transcript.answered(exchange.content, calls)
        yield Spoken(
            index=index,
            turn=turn,
            exchange=exchange,
            transcript=transcript,
            drafting=acceptance(delta),
            counters_fell=before is not None and after is not None and delta is None,
            memory=memory.sample(),
            seconds=seconds,
        )
        if exchange.error is not None and script.grows:
            return


async def revived(client: Client, exchange: Exchange, within_s: float) -> bool:
    """Whether a server lives after an answer: at once, or again within some seconds where the connection broke."""
    broke = exchange.error is not None and exchange.error.kind in (ErrorKind.CONNECT, ErrorKind.TRUNCATED)
    if not broke:
        return exchange.error is None or exchange.error.kind is not ErrorKind.TIMEOUT or await client.healthy()
    deadline = time.monotonic() + within_s
    while True:
        if await client.healthy():
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_POLL_S)
