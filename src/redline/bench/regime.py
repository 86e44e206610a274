"""The named regimes of `bench`: what is held equal, as frozen values. Numbers of different regimes are never compared.

`canonical` is what published numbers of local tiers were taken with: one prose and one code prompt, sent again and
again. `honest` takes several prompts of six classes, each once, greedy or sampled; the two differ by up to 2x where a
drafter is at work, so each has its own name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

from redline.record.event import payload
from redline.stats.stopping import StoppingRule
from redline.workload.prompts import Prompt, PromptClass, prompts

_CANONICAL: Final = Path(__file__).parent.parent / "workload" / "data" / "canonical.yaml"
PREFILL_TOKENS: Final = (10_000, 90_000)
_MOST: Final = 20
_LEAST: Final = 5


@payload("bench.regime")
@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A way of measuring. `width` is the asked half width of the interval as a share of the mean; None: `runs` runs.

    `repeats`: one prompt a class, sent every time; otherwise no prompt is sent twice.
    """

    name: str
    max_tokens: Mapping[PromptClass, int]
    temperature: float
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = 1
    warm: int = 1
    runs: int = 5
    width: float | None = None
    repeats: bool = False
    prefill_tokens: tuple[int, ...] = ()
    prefill_runs: int = 3
    classes: tuple[PromptClass, ...] = field(default_factory=tuple)

    def prompts(self, kind: PromptClass, used: frozenset[tuple[str, int]] = frozenset()) -> tuple[Prompt, ...]:
        """Return the prompts of a class in the order they are sent, those that this server has seen left out."""
        if self.repeats:
            return (Prompt(kind, 0, _canonical()[kind.value]),) * (self.warm + self.runs)
        return tuple(prompt for prompt in prompts(kind, self.seed or 0) if (kind.value, prompt.index) not in used)

    def rule(self, available: int) -> StoppingRule | None:
        """Return when to stop a class of so many prompts, or None where the number of runs is fixed."""
        if self.width is None or available < _LEAST:
            return None
        return StoppingRule(relative_width=self.width, min_runs=_LEAST, max_runs=min(_MOST, available))


_HONEST_TOKENS: Final = {
    PromptClass.PROSE: 256,
    PromptClass.CODE: 256,
    PromptClass.CHAT: 256,
    PromptClass.STRUCTURED: 192,
    PromptClass.EDIT: 192,
    PromptClass.SUMMARY: 192,
}
CANONICAL: Final = Regime(
    name="canonical-1",
    classes=(PromptClass.PROSE, PromptClass.CODE),
    max_tokens={PromptClass.PROSE: 1000, PromptClass.CODE: 800},
    temperature=0.6,
    top_p=0.95,
    top_k=20,
    min_p=0.0,
    seed=None,
    warm=3,
    runs=5,
    repeats=True,
)
HONEST_GREEDY: Final = Regime(
    name="honest-greedy-1",
    classes=tuple(_HONEST_TOKENS),
    max_tokens=_HONEST_TOKENS,
    temperature=0.0,
    width=0.01,
    prefill_tokens=PREFILL_TOKENS,
)
HONEST_SAMPLED: Final = Regime(
    name="honest-sampled-1",
    classes=tuple(_HONEST_TOKENS),
    max_tokens=_HONEST_TOKENS,
    temperature=0.6,
    top_p=0.95,
    top_k=20,
    width=0.01,
    prefill_tokens=PREFILL_TOKENS,
)


@lru_cache(maxsize=1)
def _canonical() -> dict[str, str]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, str] = yaml.load(_CANONICAL.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return found
