"""What drafters are trained on: reproducible, and none of what redline measures with."""

from drafter.prompts import CLASSES, training_prompts
from drafter.proof import UNSEEN_SEED, acceptance, permuted_chi_square, prompts_by_class


def test_a_seed_fixes_the_prompts() -> None:
    assert training_prompts(1, 50) == training_prompts(1, 50)
    assert training_prompts(1, 50) != training_prompts(2, 50)


def test_no_measuring_prompt_is_trained_on() -> None:
    held_out = {text for name, texts in prompts_by_class(0).items() if name != "fresh" for text in texts}
    assert len(held_out) == 54
    assert not held_out & set(training_prompts(1000, 20_000))


def test_prompts_of_the_proof_are_200_and_differ() -> None:
    found = [text for texts in prompts_by_class(200).values() for text in texts]
    assert len(found) == len(set(found)) == 200
    assert UNSEEN_SEED > 1_000_000


def test_each_class_writes_something() -> None:
    import random

    assert all(write(random.Random(number)) for write in CLASSES.values() for number in range(50))


def test_acceptance_comes_of_counters() -> None:
    before = {"spec_decode_num_drafts_total": 10.0, "spec_decode_num_accepted_tokens_total": 5.0}
    after = {
        "spec_decode_num_drafts_total": 20.0,
        "spec_decode_num_draft_tokens_total": 70.0,
        "spec_decode_num_accepted_tokens_total": 30.0,
        'spec_decode_num_accepted_tokens_per_pos_total{position="0"}': 9.0,
    }
    assert acceptance(before, after) == {"length": 3.5, "drafted": 7.0, "drafts": 10, "by_position": [0.9]}


def test_the_permuted_test_tells_other_from_same() -> None:
    assert permuted_chi_square([1, 2] * 100, [2, 1] * 100)[1] > 0.5
    assert permuted_chi_square([1, 2] * 100, [1, 1, 1, 2] * 50)[1] < 0.01
