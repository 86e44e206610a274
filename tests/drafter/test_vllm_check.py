"""The check of vLLM's arms: what it makes of counters and answers, and an engine that ends."""

import subprocess
import sys
import time

from drafter.vllm_check import Arm, Check

COUNTERS = {
    "spec_decode_num_drafts": 10.0,
    "spec_decode_num_draft_tokens": 70.0,
    "spec_decode_num_accepted_tokens": 20.0,
    "spec_decode_num_accepted_tokens_per_pos": [8, 6, 6],
}
ECHO = """
import json, sys
for number, line in enumerate(sys.stdin):
    if "end" in line:
        break
    print(json.dumps({"answers": json.loads(line)["ids"], "counters": {"n": 5 * number, "l": [number]}}), flush=True)
"""


def row(prompt: int, tokens: list[int], seconds: float) -> dict[str, object]:
    return {"prompt": prompt, "answers": [tokens], "decode_s": seconds, "whole_s": 2 * seconds, "counters": COUNTERS}


def test_a_summary_counts_tokens_after_the_first_and_equal_answers() -> None:
    plain = [row(0, [1, 2, 3], 0.5), row(1, [4, 5], 0.5)]
    found = Check.summary([row(0, [1, 2, 3], 0.2), row(1, [4, 6], 0.1)], plain)
    assert (found["prompts"], found["tokens"], found["same"]) == (2, 5, 1)
    assert (found["decode_tok_s"], found["whole_tok_s"]) == (10.0, 8.3)
    assert (found["length"], found["drafted"], found["by_position"]) == (3.0, 7.0, [0.8, 0.6, 0.6])


def test_an_arm_without_drafts_has_no_length() -> None:
    assert Check.summary([{**row(0, [1, 2], 1), "counters": {}}], [])["length"] is None


def test_counters_are_what_a_request_moved_and_an_ended_engine_is_given_up() -> None:
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    arm, until = Arm(process), time.monotonic() + 60
    assert arm.ask(until, ids=[[1]]) == {"answers": [[1]], "counters": {"n": 0, "l": [0]}}
    assert arm.ask(until, ids=[[2]]) == {"answers": [[2]], "counters": {"n": 5, "l": [1]}}
    assert arm.ask(until, ids=["end"]) is None
    assert not arm.alive
    arm.end()
