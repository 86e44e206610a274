"""The named regimes, the prompts they send, and what may not be compared."""

import pytest

from redline.bench.confound import confounding, differences
from redline.bench.prefill import PrefillSample, lengths_that_fit, summarise_prefill
from redline.bench.regime import CANONICAL, HONEST_GREEDY, HONEST_SAMPLED, Regime
from redline.workload.prompts import PromptClass


def test_the_canonical_regime_is_that_of_published_numbers() -> None:
    """A change here changes what recorded numbers mean: give it a new name with it."""
    assert CANONICAL.name == "canonical-1"
    assert (CANONICAL.temperature, CANONICAL.top_p, CANONICAL.top_k, CANONICAL.min_p) == (0.6, 0.95, 20, 0.0)
    assert CANONICAL.max_tokens == {PromptClass.PROSE: 1000, PromptClass.CODE: 800}
    sent = CANONICAL.prompts(PromptClass.PROSE)
    assert (len(sent), len({prompt.text for prompt in sent})) == (8, 1)


@pytest.mark.parametrize("regime", [HONEST_GREEDY, HONEST_SAMPLED])
def test_an_honest_regime_never_repeats_a_prompt(regime: Regime) -> None:
    for kind in PromptClass:
        texts = [prompt.text for prompt in regime.prompts(kind)]
        assert len(texts) == len(set(texts)) >= 10
        assert regime.rule(len(texts)) is not None


def test_greedy_and_sampled_have_names_of_their_own() -> None:
    assert len({CANONICAL.name, HONEST_GREEDY.name, HONEST_SAMPLED.name}) == 3


def test_prompts_that_were_used_are_left_out() -> None:
    first = HONEST_GREEDY.prompts(PromptClass.CODE)[0]
    rest = HONEST_GREEDY.prompts(PromptClass.CODE, frozenset({("code", first.index)}))
    assert first not in rest
    assert len(rest) == len(HONEST_GREEDY.prompts(PromptClass.CODE)) - 1


@pytest.mark.parametrize(
    ("context", "lengths"),
    [(262_144, (10_000, 90_000)), (32_768, (10_000, 30_066)), (8192, (7456,)), (512, ()), (None, (10_000,))],
)
def test_prefill_takes_what_fits(context: int | None, lengths: tuple[int, ...]) -> None:
    assert lengths_that_fit((10_000, 90_000), context) == lengths


def test_a_cached_prompt_is_no_prefill() -> None:
    def sample(*, unseen: bool | None, rate: float) -> PrefillSample:
        return PrefillSample(
            regime="r",
            boot_id="b",
            target_tokens=10_000,
            prompt_tokens=10_000,
            cached_tokens=None if unseen is None else 0 if unseen else 9990,
            unseen=unseen,
            ttft_s=1.0,
            prefill_tok_s=rate,
            error=None,
        )

    rows = [sample(unseen=True, rate=1000.0), sample(unseen=True, rate=1010.0), sample(unseen=False, rate=9e9)]
    (found,) = summarise_prefill(rows)
    assert found.prefill_tok_s is not None
    assert (found.prefill_tok_s.n, found.prefill_tok_s.mean, found.failed) == (2, 1005.0, 1)


def test_what_makes_a_tier_may_differ_and_nothing_else() -> None:
    a = {"drafter": "none", "spec_n": 0, "max_model_len": 8192, "port": 1}
    b = {"drafter": "lookup", "spec_n": 7, "max_model_len": 4096, "port": 2}
    found = differences(a, b)
    assert [item.name for item in found] == ["drafter", "max_model_len", "spec_n"]
    assert [str(item) for item in confounding(found)] == ["max_model_len: 8192 against 4096"]
    assert confounding(found, frozenset({"max_model_len"})) == ()
