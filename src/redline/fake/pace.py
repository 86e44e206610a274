"""The timing model: how long a prompt takes, how many tokens a decode step yields and how long it lasts.

Seeded, so that a test knows the process; the drafter's chances are those of the scenario. Knows no clock.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from redline.fake.scenario import Drafter, Speed


@dataclass(frozen=True, slots=True)
class Step:
    """One decode step: seconds it takes, tokens it yields, tokens drafted, tokens accepted."""

    seconds: float
    tokens: int
    drafted: int
    accepted: int


def prefill_s(speed: Speed, uncached_tokens: int) -> float:
    """Return the seconds from the start of a prompt until its first token is there."""
    return speed.overhead_s + uncached_tokens / speed.prefill_tok_s


class Pace:
    """The steps of one answer. `others` is asked at each step for the number of other requests that run."""

    def __init__(self, speed: Speed, drafter: Drafter | None, *, seed: int, answered: int, spoken: int) -> None:
        self._speed, self._drafter = speed, drafter
        self._draw = random.Random(seed)
        self._age = 1 + speed.age_factor * answered
        self._spoken = spoken  # tokens the server has made in its life, which a collapsing drafter counts

    def steps(self, context: int, tokens: int) -> Iterator[Step]:
        """Yield steps until `tokens` tokens are made, after a prompt of `context` tokens.

        The first token comes from the prompt itself and drafts nothing. A step that would pass the end is cut there:
        its accepted tokens are those that fit, as engines count them.
        """
        made = 1
        yield Step(0.0, 1, 0, 0)
        while made < tokens:
            drafted, accepted = self._draft(tokens - made - 1)
            yield Step(self._seconds(context + made), 1 + accepted, drafted, accepted)
            made += 1 + accepted
            self._spoken += 1 + accepted

    def _seconds(self, depth: int) -> float:
        speed = self._speed
        slow = speed.slow_factor if speed.slow_above_tokens is not None and depth > speed.slow_above_tokens else 1.0
        return speed.step_s * slow * self._age * (1 + speed.spread * self._draw.uniform(-1, 1))

    def _draft(self, room: int) -> tuple[int, int]:
        """Return how many tokens a step drafts and how many of them are accepted, at most `room`."""
        drafter = self._drafter
        if drafter is None or drafter.mode == "idle":
            return 0, 0
        collapsed = drafter.mode == "collapse" and self._spoken >= drafter.collapse_after_tokens
        if drafter.mode == "dead" or collapsed:
            return drafter.depth, 0
        accepted = 0
        while accepted < drafter.depth and self._draw.random() < drafter.acceptance:
            accepted += 1
        return drafter.depth, min(accepted, max(room, 0))
