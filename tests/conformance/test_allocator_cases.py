"""The recorded answers of vLLM's allocator: enough of them, drawn by this generator, true to themselves."""

import dataclasses
import random
from collections import Counter

import pytest

from conformance.cases import PATH, SEED, Case, byte_amounts, load_cases, questions
from conformance.shape import Drafting, Question

CASES = load_cases()


def test_there_are_enough_configurations_of_every_family() -> None:
    assert len({case.question.with_bytes(0) for case in CASES}) >= 200
    families = Counter((case.family, case.question.drafter.kind) for case in CASES)
    assert {("hybrid", Drafting.MTP), ("qwen38-27b", Drafting.DFLASH2), ("sliding", Drafting.NONE)} <= families.keys()
    assert ("dense", Drafting.DFLASH2) in families
    assert PATH.stat().st_size < 300 * 1024


def test_the_file_holds_what_the_generator_asks() -> None:
    asked = list(questions())
    amounts = random.Random(SEED + 1)
    recorded = iter(CASES)
    for family, question in asked:
        first = next(recorded)
        expected = byte_amounts(amounts, first.answer.pool_block_bytes, first.answer.request_blocks)
        for available_bytes, case in zip(expected, (first, next(recorded), next(recorded)), strict=True):
            assert (case.family, case.question) == (family, question.with_bytes(available_bytes))
    assert next(recorded, None) is None


@pytest.mark.parametrize("family", ["qwen38-27b", "hybrid", "sliding", "dense"])
def test_answers_agree_with_themselves(family: str) -> None:
    of_family = [case for case in CASES if case.family == family]
    assert len(of_family) >= 100
    for case in of_family:
        assert_agrees(case)


def assert_agrees(case: Case) -> None:
    question, answer = case.question, case.answer
    assert answer.request_blocks == sum(group.request_blocks for group in answer.groups)
    assert answer.num_blocks == question.available_bytes // answer.pool_block_bytes
    assert answer.pool_block_bytes == answer.page_bytes * max(group.layers for group in answer.groups)
    assert answer.boots == (answer.largest_context >= question.context)
    assert answer.state_bytes <= answer.page_bytes
    if answer.boots:
        assert answer.tokens == answer.num_blocks * question.context // answer.request_blocks
    else:
        assert answer.tokens is None
        assert answer.concurrency is None


def test_a_boot_needs_one_block_more_than_its_request() -> None:
    at_the_limit = [case for case in CASES if abs(case.answer.num_blocks - case.answer.request_blocks) <= 1]
    assert len(at_the_limit) > 100
    assert {case.answer.boots for case in at_the_limit} == {True, False}
    assert all(case.answer.boots == (case.answer.num_blocks > case.answer.request_blocks) for case in CASES)


def test_a_question_survives_json() -> None:
    for case in CASES[::40]:
        assert Question.from_json(case.question.to_json()) == case.question


def test_a_misspelt_key_is_an_error() -> None:
    record = CASES[0].question.to_json() | {"contxt": 4096}
    with pytest.raises(TypeError, match="contxt"):
        Question.from_json(record)


def test_recurrent_and_sliding_layers_together_are_refused() -> None:
    hybrid = next(case.question.architecture for case in CASES if case.family == "hybrid")
    with pytest.raises(ValueError, match="sliding-window"):
        dataclasses.replace(hybrid, sliding_layers=4, sliding_window=1024).config()
