"""Prompt classes: enough of each, none twice, an order that the seed fixes."""

import pytest

from redline.workload.corpus import unique_share
from redline.workload.prompts import SHORT_CLASSES, PromptClass, prompts


@pytest.mark.parametrize("prompt_class", list(PromptClass))
def test_at_least_ten_prompts_and_none_twice(prompt_class: PromptClass) -> None:
    found = prompts(prompt_class, 1)
    assert len(found) >= 10
    assert len({prompt.text for prompt in found}) == len(found)
    assert {prompt.index for prompt in found} == set(range(len(found)))
    assert all(prompt.messages == ({"role": "user", "content": prompt.text},) for prompt in found)


@pytest.mark.parametrize("prompt_class", list(PromptClass))
def test_a_seed_fixes_the_order(prompt_class: PromptClass) -> None:
    assert prompts(prompt_class, 7) == prompts(prompt_class, 7)
    orders = {tuple(prompt.index for prompt in prompts(prompt_class, seed, 50)) for seed in range(8)}
    assert len(orders) > 5


def test_structured_prompts_ask_for_json_or_yaml() -> None:
    assert all("JSON" in prompt.text or "YAML" in prompt.text for prompt in prompts(PromptClass.STRUCTURED, 1))


def test_summaries_stand_behind_texts_of_the_asked_length_that_nobody_saw_before() -> None:
    found = prompts(PromptClass.SUMMARY, 1, 2000)
    assert all(2000 < len(prompt.text.split()) < 2060 for prompt in found)
    assert len({prompt.text[:8] for prompt in (*found, *prompts(PromptClass.SUMMARY, 2, 50))}) == 2 * len(found)
    assert unique_share("\n".join(prompt.text for prompt in found)) > 0.98


def test_a_quick_look_takes_short_prompts() -> None:
    assert all(len(prompt.text) < 1000 for kind in SHORT_CLASSES for prompt in prompts(kind, 1))
