"""The engine inside: slots, prefix cache, decoding in steps at real times, counters. Knows no HTTP and no dialect."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from redline.fake import tokens
from redline.fake.model import Reply, reply
from redline.fake.pace import Pace, prefill_s
from redline.fake.prompt import Prompt
from redline.fake.scenario import Scenario
from redline.fake.totals import PrefixCache, Totals

Kind = Literal["reasoning", "content", "tool_call"]
_CORRUPT_FROM: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """What one decode step, or part of it, adds to the answer. A tool call's name comes with its first tokens."""

    kind: Kind
    text: str
    tokens: int
    call: int = 0
    name: str | None = None


@dataclass(slots=True, kw_only=True)
class Job:
    """One request under way. Mutable: filled in as it runs, read when it is over."""

    number: int
    prompt: Prompt
    prompt_tokens: int
    units: tuple[Emission, ...]
    finish_reason: str
    received_ns: int = field(default_factory=time.monotonic_ns)
    cached_tokens: int = 0
    made_tokens: int = 0
    drafts: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    accepted_histogram: list[int] = field(default_factory=list)
    prefill_s: float = 0.0
    decode_s: float = 0.0


class Core:
    """One model on one imaginary device."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario, self.seed = scenario, seed
        self.totals = Totals()
        self.answered = 0
        self.jobs: dict[int, Job] = {}
        self._spoken = 0
        self._cache = PrefixCache(scenario.model.block_tokens)
        self._queue: deque[asyncio.Future[None]] = deque()
        self._leak: list[bytearray] = []
        self._number = 0

    def job(self, prompt: Prompt) -> Job:
        """Return the job for a prompt, its answer worked out and cut to the tokens that are allowed."""
        self._number += 1
        room = max(0, min(prompt.max_tokens, self.scenario.model.context - tokens.count(prompt.text)))
        answer = reply(prompt, self.scenario.model, self.scenario.answer, self.seed, self._number)
        whole = _units(answer, inline=self.scenario.wire.reasoning_field == "inline")
        if self.scenario.drafter is not None and self.scenario.drafter.mode == "corrupt":
            whole = _corrupted(whole)
        units, finish = self._with_empty(prompt, whole, room)
        if prompt.ignore_eos and len(units) < room and room < 1 << 20:
            from redline.fake.text import prose

            units += tuple(_plain("content", f" {prose(prompt.text, room - len(units))}"))
        if len(units) > room:
            units, finish = units[:room], "length"
        early = self.scenario.answer.stops_after_tokens
        if early is not None and len(units) > early:
            units, finish = units[:early], "stop"
        return Job(
            number=self._number,
            prompt=prompt,
            prompt_tokens=tokens.count(prompt.text),
            units=units,
            finish_reason="tool_calls" if finish == "stop" and any(unit.name for unit in units) else finish,
        )

    def _with_empty(self, prompt: Prompt, units: tuple[Emission, ...], room: int) -> tuple[tuple[Emission, ...], str]:
        """Return the answer with the scenario's way of being empty, on the requests that it falls on."""
        answer = self.scenario.answer
        masked = answer.empty == "masked"
        if answer.empty == "no" or self._number % answer.empty_every or (masked and not self._constrained(prompt)):
            return units, "stop"
        if answer.empty == "reasoning_budget":
            thought = tuple(_plain("reasoning", "I go on thinking about this. " * (min(room, 4096) // 6 + 1)))
            return thought[:room], "length"
        return (), "stop"

    @staticmethod
    def _constrained(prompt: Prompt) -> bool:
        """Whether a grammar masks the tokens of this answer."""
        return prompt.schema is not None or (bool(prompt.tools) and prompt.tool_choice != "none")

    async def run(self, job: Job, gone: Callable[[], bool], *, merged: bool) -> AsyncGenerator[Emission, None]:
        """Yield the answer's parts when they are made; `merged`: a step's tokens of one kind as one part.

        Ends early when `gone` says that the client has left, as engines abort such requests.
        """
        await self._enter()
        self.jobs[job.number] = job
        started = time.monotonic()
        try:
            self._look_up(job)
            compiling = self.scenario.speed.first_request_s if job.number == 1 else 0.0
            wait_s = compiling + prefill_s(self.scenario.speed, job.prompt_tokens - job.cached_tokens)
            await _until(started + wait_s, gone)
            job.prefill_s = time.monotonic() - started
            async for emission in self._decode(job, gone, merged=merged):
                yield emission
        finally:
            job.decode_s = time.monotonic() - started - job.prefill_s
            del self.jobs[job.number]
            self._leave(job)

    async def _decode(self, job: Job, gone: Callable[[], bool], *, merged: bool) -> AsyncGenerator[Emission, None]:
        speed = self.scenario.speed
        pace = Pace(
            speed, self.scenario.drafter, seed=self.seed + job.number, answered=self.answered, spoken=self._spoken
        )
        at, due = 0, time.monotonic()
        for step in pace.steps(job.prompt_tokens, len(job.units)) if job.units else ():
            due += step.seconds * (1 + speed.batch_cost * (self.totals.running - 1))
            await _until(due, gone)
            if self._over_pool(job):
                due += await self._preempted(job, gone)
            if gone():
                return
            part = job.units[at : at + step.tokens]
            at += step.tokens
            self._count(job, len(part), step.drafted, step.accepted)
            for emission in _merge(part) if merged else part:
                yield emission

    def _held(self) -> int:
        return sum(job.prompt_tokens + job.made_tokens for job in self.jobs.values())

    def _over_pool(self, job: Job) -> bool:
        """Whether the KV pool overflows and this request is the youngest, which is the one that has to go."""
        pool = self.scenario.model.pool_tokens
        return pool is not None and len(self.jobs) > 1 and job.number == max(self.jobs) and self._held() > pool

    async def _preempted(self, job: Job, gone: Callable[[], bool]) -> float:
        """Give the blocks back, wait until an older request is done, do the prompt again; return the seconds lost."""
        began = time.monotonic()
        self.totals.preemptions += 1
        del self.jobs[job.number]
        count = len(self.jobs)
        while len(self.jobs) >= count and self.jobs and not gone():  # noqa: ASYNC110 -- as engines poll their queue
            await asyncio.sleep(0.005)
        self.jobs[job.number] = job
        again = prefill_s(self.scenario.speed, job.prompt_tokens + job.made_tokens)
        await _until(time.monotonic() + again, gone)
        return time.monotonic() - began

    def _count(self, job: Job, made: int, drafted: int, accepted: int) -> None:
        job.made_tokens += made
        self._spoken += made
        self.totals.generated_tokens += made
        self.totals.count_step(drafted, accepted)
        if drafted:
            job.drafts += 1
            job.drafted_tokens += drafted
            job.accepted_tokens += accepted
            job.accepted_histogram.extend([0] * (drafted + 1 - len(job.accepted_histogram)))
            job.accepted_histogram[accepted] += 1

    def _look_up(self, job: Job) -> None:
        match self.scenario.life.cache:
            case "everything":
                job.cached_tokens = max(0, job.prompt_tokens - self.scenario.model.block_tokens)
            case "normal":
                job.cached_tokens = self._cache.look_up(job.prompt.text)
            case "off":
                pass
        self.totals.prompt_tokens += job.prompt_tokens
        self.totals.cached_tokens += job.cached_tokens
        self.totals.cache_queries += job.prompt_tokens
        self.totals.cache_hits += job.cached_tokens

    async def _enter(self) -> None:
        if self.totals.running >= self.scenario.model.slots:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            self.totals.waiting += 1
            try:
                await turn  # whoever leaves hands its slot over, so `running` stays what it is
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._free_slot()
                elif turn in self._queue:
                    self._queue.remove(turn)
                raise
            finally:
                self.totals.waiting -= 1
        else:
            self.totals.running += 1

    def _free_slot(self) -> None:
        if self._queue:
            self._queue.popleft().set_result(None)
        else:
            self.totals.running -= 1

    def _leave(self, job: Job) -> None:
        totals = self.totals
        totals.answered += 1
        totals.prefill_s += job.prefill_s
        totals.decode_s += job.decode_s
        totals.first_token_s += job.prefill_s
        totals.longest = max(totals.longest, job.prompt_tokens + job.made_tokens)
        totals.finished[job.finish_reason] = totals.finished.get(job.finish_reason, 0) + 1
        self.answered += 1
        self._free_slot()
        self._grow_old()

    def _grow_old(self) -> None:
        life = self.scenario.life
        if life.leak_bytes_per_request:
            # Written to, page by page, so that the memory is really taken.
            self._leak.append(bytearray(b"\1") * life.leak_bytes_per_request)
        if life.counters_reset_every and self.answered % life.counters_reset_every == 0:
            self.totals.reset()


def _units(answer: Reply, *, inline: bool) -> tuple[Emission, ...]:
    """Return the answer token by token; inline: reasoning in the content, as without a reasoning parser."""
    units: list[Emission] = []
    if answer.reasoning and inline:
        units += _plain("content", f"<think>\n{answer.reasoning}\n</think>\n\n{answer.content}")
    else:
        units += _plain("reasoning", answer.reasoning)
        units += _plain("content", answer.content)
    for index, call in enumerate(answer.calls):
        name = [
            Emission(kind="tool_call", text="", tokens=1, call=index, name=call.name if n == 0 else None)
            for n in range(tokens.count(f"<tool_call>{call.name}"))
        ]
        units += name + [
            Emission(kind="tool_call", text=piece, tokens=1, call=index) for piece in tokens.pieces(call.arguments)
        ]
    return tuple(units)


def _corrupted(units: tuple[Emission, ...]) -> tuple[Emission, ...]:
    """Return an answer as wrongly accepted tokens make it: from the twentieth on, every tenth repeats its neighbour."""
    return tuple(
        units[at - 1] if at >= _CORRUPT_FROM and at % 10 == 0 and unit.kind == "content" else unit
        for at, unit in enumerate(units)
    )


def _plain(kind: Kind, text: str) -> list[Emission]:
    return [Emission(kind=kind, text=piece, tokens=1) for piece in tokens.pieces(text)]


def _merge(part: tuple[Emission, ...]) -> list[Emission]:
    """Join neighbours of one kind (and one call) into one emission."""
    merged: list[Emission] = []
    for unit in part:
        last = merged[-1] if merged else None
        if last is not None and (last.kind, last.call) == (unit.kind, unit.call):
            merged[-1] = Emission(
                kind=last.kind,
                text=last.text + unit.text,
                tokens=last.tokens + unit.tokens,
                call=last.call,
                name=last.name or unit.name,
            )
        else:
            merged.append(unit)
    return merged


async def _until(moment: float, gone: Callable[[], bool]) -> None:
    """Sleep until a moment of the monotonic clock, in slices, so that a client that leaves is noticed."""
    while (left := moment - time.monotonic()) > 0 and not gone():  # noqa: ASYNC110 -- nothing signals a client's end
        await asyncio.sleep(min(left, 0.25))
