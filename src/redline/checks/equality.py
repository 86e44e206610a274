"""Does drafting leave the answers as they are? A second server of the same weights that drafts nothing is the witness.

Speculative decoding verifies every token with the target, so greedy answers must not depend on the drafter; but several
tokens at once are computed by other kernels than one, and where two tokens are nearly alike, rounding decides. The
witness is therefore asked for its log probabilities, and a difference between neighbours is told from a real one.
"""

from dataclasses import dataclass
from typing import Any, Final

from redline.checks.asking import chat_request, put, trouble
from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason
from redline.checks.spec import counting
from redline.probe.exchange import ChatRequest
from redline.workload.prompts import PromptClass, prompts

_TOKENS: Final = 64
# Nats between two tokens that rounding may exchange. Measured on the embedded tiers: docs/measuring.md.
TIE_NATS: Final = 0.2
_CANDIDATES: Final = 5
_SHOWN: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where two answers part: the characters before it, how each goes on, nats between the two tokens where known."""

    at: int
    drafted: str
    plain: str
    gap_nats: float | None

    @property
    def tie(self) -> bool:
        """Whether rounding explains it."""
        return self.gap_nats is not None and self.gap_nats <= TIE_NATS

    def describe(self) -> str:
        """Return it in words."""
        gap = "" if self.gap_nats is None else f", {self.gap_nats:.3f} nats apart"
        return f"from character {self.at} on {self.drafted!r}, without drafting {self.plain!r}{gap}"


def first_difference(drafted: str, plain: str, tokens: list[dict[str, Any]]) -> Difference | None:
    """Return where two greedy answers part, None where they are the same text.

    `tokens` are those of `plain` in OpenAI's form: `token`, `logprob`, and `top_logprobs` with the same two.
    """
    if drafted == plain:
        return None
    pairs = zip(drafted, plain, strict=False)
    at = next((place for place, (left, right) in enumerate(pairs) if left != right), min(len(drafted), len(plain)))
    return Difference(
        at=at,
        drafted=drafted[at : at + _SHOWN],
        plain=plain[at : at + _SHOWN],
        gap_nats=_gap(drafted, at, tokens),
    )


def _gap(drafted: str, at: int, tokens: list[dict[str, Any]]) -> float | None:
    """Return how much less likely the drafted server's token was, None where the witness does not list it."""
    start = 0
    for token in tokens:
        text = str(token.get("token", ""))
        if start + len(text) > at or not text:
            rest = drafted[start:]
            others = [row for row in token.get("top_logprobs") or () if row.get("token") and row["token"] != text]
            found = [float(row["logprob"]) for row in others if rest.startswith(str(row["token"]))]
            return float(token["logprob"]) - max(found) if found and "logprob" in token else None
        start += len(text)
    return None


class GreedyEquality(BaseCheck):
    """Greedy answers are the same with and without the drafter, but for ties that rounding decides."""

    id, title, failure_class = "spec.equal_greedy", "same answers undrafted", "drafting changes the answer"
    most_tokens = (400, 3 * _TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Have three prompts answered by both servers, and compare to the first difference."""
        if context.drafting is False:
            return self.skip(SkipReason.NOT_OFFERED, "this tier drafts nothing")
        if context.reference is None:
            words = "no server of these weights without drafting to compare with (--reference, --reference-url)"
            return self.skip(SkipReason.NOT_OFFERED, words)
        texts = {
            "count": counting(context.seed + 31, 40),
            "edit": prompts(PromptClass.EDIT, context.seed)[1].text,
            "code": prompts(PromptClass.CODE, context.seed)[1].text,
        }
        found: dict[str, Difference] = {}
        for kind, text in texts.items():
            request = chat_request(context, text, _TOKENS)
            drafted = await put(context, request, timeout_s=120)
            if broken := trouble(drafted):
                return self.result(CheckStatus.FAIL, f"{kind}: {broken}")
            plain = await _witness(context, request)
            if isinstance(plain, str):
                return self.result(CheckStatus.INCONCLUSIVE, f"{kind}: the reference gave no answer: {plain}")
            difference = first_difference(drafted.content, *plain)
            if difference is not None:
                found[kind] = difference
        return self._verdict(len(texts), found)

    def _verdict(self, asked: int, found: dict[str, Difference]) -> CheckResult:
        metrics = {"answers": float(asked), "same": float(asked - len(found))}
        for kind, item in found.items():
            metrics[f"differs_at_{kind}"] = float(item.at)
            if item.gap_nats is not None:
                metrics[f"gap_nats_{kind}"] = item.gap_nats
        if not found:
            return self.result(CheckStatus.PASS, f"{asked} of {asked} greedy answers are the same", metrics=metrics)
        kind, first = min(found.items(), key=lambda pair: (pair[1].tie, pair[1].at))
        words = f"{asked - len(found)} of {asked} greedy answers are the same; {kind}: {first.describe()}"
        if all(item.tie for item in found.values()):
            return self.result(CheckStatus.WARN, f"{words}: rounding decides there", metrics=metrics)
        # Without probabilities one difference may be a tie; when most answers differ, it is the drafter.
        unknown = all(item.tie or item.gap_nats is None for item in found.values())
        status = CheckStatus.INCONCLUSIVE if unknown and 2 * len(found) <= asked else CheckStatus.FAIL
        return self.result(status, words, evidence=first.drafted, metrics=metrics)


async def _witness(context: CheckContext, request: ChatRequest) -> tuple[str, list[dict[str, Any]]] | str:
    """Return the reference's answer with its tokens, or why there is none."""
    assert context.reference is not None
    body = request.body(context.reference.target.model, stream=False)
    asked = {**body, "logprobs": True, "top_logprobs": _CANDIDATES}
    reply = await context.reference.post("/v1/chat/completions", asked, timeout_s=120 * context.patience)
    if reply.status == 400:  # a server that gives no probabilities
        reply = await context.reference.post("/v1/chat/completions", body, timeout_s=120 * context.patience)
    try:
        choice = reply.data["choices"][0]
        tokens = (choice.get("logprobs") or {}).get("content") or []
        return str(choice["message"].get("content") or ""), list(tokens)
    except (KeyError, TypeError, IndexError):
        return reply.text[:200]
