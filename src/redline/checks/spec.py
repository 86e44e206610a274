"""Does the drafter draft, is enough accepted, and does that last? By the engine's own counters, as differences.

The counters are the server's: what others ask of it at the same time is counted with what a check asks.
Whether drafting leaves the answers alone is asked in `equality`.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.engine.counters import Acceptance, acceptance, counters_delta
from redline.workload.corpus import Corpus
from redline.workload.prompts import PromptClass, prompts

_DATA: Final = Path(__file__).parent / "data" / "drafting.yaml"
_TOKENS: Final = 80
_LONG_TOKENS: Final = 600
_LONG_TURNS: Final = 8
_COPIED_CHARACTERS: Final = 1200
# Fewer drafted steps than this say nothing about a share.
_FEWEST_DRAFTS: Final = 8
# How much of the early gain must be left late. A drafter that dies loses all of it, a change of subject perhaps half.
_KEPT_GAIN: Final = 0.3


def floor_of(method: str, depth: int) -> float:
    """Return the least mean length that a method at a depth must reach, in tokens a drafted step."""
    rows = [row for row in _floors() if row["depth"] <= max(depth, 1)]
    own = [row for row in rows if row["method"] and row["method"] in method]
    return float(max(own or [row for row in rows if not row["method"]], key=lambda row: row["depth"])["mean_length"])


@lru_cache(maxsize=1)
def _floors() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[dict[str, Any]] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return found


def counting(seed: int, length: int) -> str:
    """Return a request to count that no earlier one of this seed was; every drafter can foresee its answer."""
    first = 1 + seed % 97
    return f"Count from {first} to {first + length - 1} in digits, separated by commas."


def copying(seed: int, turn: int) -> str:
    """Return a request to write out a text that no other turn or seed has; what follows stands in the prompt.

    Small models copy where they cannot count: the 135M one drafts 4.8 to 7.9 tokens a step over such texts by lookup,
    and at counting it stops at once or falls into a loop of its own.
    """
    return f"Write this text again, word for word:\n\n{Corpus(f'copy/{seed}/{turn}').characters(_COPIED_CHARACTERS)}"


@dataclass(frozen=True, slots=True)
class Work:
    """What one request drafted, and what was wrong with it."""

    found: Acceptance | None
    broken: str | None


async def measure_drafting(context: CheckContext, text: str, tokens: int) -> Work:
    """Have a text answered between two readings of the counters."""
    before = await context.client.counters()
    exchange = await put(context, chat_request(context, text, tokens), timeout_s=120)
    after = await context.client.counters()
    found = acceptance(counters_delta(before, after)) if before and after else None
    return Work(found, trouble(exchange))


def added(parts: list[Acceptance]) -> Acceptance:
    """Return the acceptance of several stretches together."""
    return Acceptance(
        drafts=sum(part.drafts for part in parts),
        draft_tokens=sum(part.draft_tokens for part in parts),
        accepted_tokens=sum(part.accepted_tokens for part in parts),
    )


class _DraftingCheck(BaseCheck):
    """What the checks of drafting share: when they are not asked."""

    def absent(self, context: CheckContext) -> CheckResult | None:
        return None if context.drafting is not False else self.skip(SkipReason.NOT_OFFERED, "this tier drafts nothing")

    def unseen(self, context: CheckContext) -> CheckResult:
        """Return the result where the engine counts nothing, or began to count anew."""
        if context.drafting is None:
            return self.skip(SkipReason.NOT_OFFERED, "nothing says that this server drafts")
        return self.result(CheckStatus.INCONCLUSIVE, "the engine gives no drafting counters, or they began anew")


class DraftAcceptance(_DraftingCheck):
    """The drafter drafts, and the target accepts enough of it for its method and depth, over three kinds of prompt."""

    id, title, failure_class = "spec.acceptance", "drafting", "dead drafter"
    most_tokens = (700, 3 * _TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Have the model count, edit a text and write code, each between two readings of the counters."""
        if refusal := self.absent(context):
            return refusal
        texts = {
            "count": counting(context.seed, 30),
            "edit": prompts(PromptClass.EDIT, context.seed)[0].text,
            "code": prompts(PromptClass.CODE, context.seed)[0].text,
        }
        parts: dict[str, Acceptance] = {}
        for kind, text in texts.items():
            work = await measure_drafting(context, text, _TOKENS)
            if work.broken:
                return self.result(CheckStatus.FAIL, f"{kind}: {work.broken}")
            if work.found is not None:
                parts[kind] = work.found
        if not parts:
            return self.unseen(context)
        return self._verdict(context, parts)

    def _verdict(self, context: CheckContext, parts: dict[str, Acceptance]) -> CheckResult:
        whole = added(list(parts.values()))
        if whole.mean_length is None:
            if context.drafting is None:
                return self.skip(SkipReason.NOT_OFFERED, "nothing is drafted, and nothing says that it should be")
            return self.result(CheckStatus.FAIL, "nothing was drafted", metrics={"drafts": 0.0})
        metrics = {"drafts": float(whole.drafts), "mean_length": whole.mean_length, "rate": whole.rate or 0.0}
        metrics |= {f"mean_length_{kind}": part.mean_length for kind, part in parts.items() if part.mean_length}
        floor = floor_of(context.draft_method, context.draft_depth)
        words = (
            f"{whole.mean_length:.1f} tokens a drafted step, {whole.accepted_tokens} of {whole.draft_tokens} accepted"
        )
        if whole.mean_length < floor:
            words = f"{words}; {floor:g} is the least for {context.draft_method or 'any drafter'}"
            return self.result(CheckStatus.FAIL, words, metrics=metrics)
        return self.result(CheckStatus.PASS, words, metrics=metrics)


class DraftEndurance(_DraftingCheck):
    """Acceptance does not fall as the server's cumulative tokens grow (club-3090#1052: good at first, then dead)."""

    id, title, failure_class = "spec.cumulative", "drafting over time", "acceptance collapse"

    async def run(self, context: CheckContext) -> CheckResult:
        """Have one text after another copied, and compare the last third of the drafting with the first."""
        if refusal := self.absent(context):
            return refusal
        parts: list[Acceptance] = []
        for turn in range(_LONG_TURNS):
            work = await measure_drafting(context, copying(context.seed, turn), _LONG_TOKENS)
            if work.broken:
                return self.result(CheckStatus.FAIL, f"request {turn + 1}: {work.broken}")
            if work.found is not None and work.found.drafts:
                parts.append(work.found)
        if len(parts) < 3:
            return self.unseen(context)
        third = max(1, len(parts) // 3)
        early, late = added(parts[:third]), added(parts[-third:])
        return self._verdict(early, late)

    def _verdict(self, early: Acceptance, late: Acceptance) -> CheckResult:
        if min(early.drafts, late.drafts) < _FEWEST_DRAFTS:
            words = f"only {early.drafts} and {late.drafts} drafted steps: too few to compare"
            return self.result(CheckStatus.INCONCLUSIVE, words)
        first, last = early.mean_length or 1.0, late.mean_length or 1.0
        metrics = {"mean_length_early": first, "mean_length_late": last, "drafts": float(early.drafts + late.drafts)}
        words = f"{first:.2f} tokens a drafted step at first, {last:.2f} at last"
        if last - 1 < _KEPT_GAIN * (first - 1) or last < floor_of("", 1):
            return self.result(CheckStatus.FAIL, words, metrics=metrics)
        return self.result(CheckStatus.PASS, words, metrics=metrics)
