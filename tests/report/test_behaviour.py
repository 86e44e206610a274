"""What a server did over time and at depth, from every kind of record that tells."""

from typing import Any

import pytest
from tests.report.records import check, drafted, make_record, sample, soak_turn

from redline.bench.prefill import PrefillSample
from redline.checks.ramp import RampTurn
from redline.checks.stages import StagesPlan
from redline.launch.outcome import ServerMemory
from redline.record.reading import RunRecord
from redline.report import behaviour
from redline.workload.prompts import PromptClass


def test_drafting_adds_up_by_place_and_over_time() -> None:
    found = behaviour.drafting(
        [make_record([drafted(PromptClass.PROSE, 0, 80.0, 12), drafted(PromptClass.CODE, 1, 80.0, 6)])]
    )
    assert found is not None
    assert found.mean_length == pytest.approx(1 + 18 / 8)
    assert [(item.position, item.accepted, item.drafts) for item in found.by_position] == [
        (1, 8, 8),
        (2, 6, 8),
        (3, 4, 8),
    ]
    assert [point.tokens_before for point in found.over_time] == [0, 128]
    assert behaviour.drafting([make_record([sample(PromptClass.PROSE, 0, 1.0)])]) is None


def test_context_needs_prompts_of_different_sizes() -> None:
    near = make_record([sample(PromptClass.PROSE, n, 50.0) for n in range(4)])
    assert behaviour.context_points([near]) == ()
    far = make_record([sample(PromptClass.PROSE, 0, 50.0), sample(PromptClass.PROSE, 1, 40.0, prompt_tokens=4000)])
    assert [point.context_tokens for point in behaviour.context_points([far])] == [40, 4000]


def test_needles_keep_the_worse_verdict() -> None:
    hit, miss = {"needle_at_4096_50": 1.0}, {"needle_at_4096_50": 0.0, "needle_at_4096_90": 1.0}
    record = make_record([check("l.a", metrics=hit), check("l.b", metrics=miss), check("l.c", metrics=hit)])
    cells = behaviour.needle_cells([record])
    assert [(cell.context_tokens, cell.position_percent, cell.status.value) for cell in cells] == [
        (4096, 50.0, "fail"),
        (4096, 90.0, "pass"),
    ]


def test_memory_is_of_one_boot_on_one_clock() -> None:
    one = make_record([ServerMemory(server_id="a", phase="verify", resident_bytes=n) for n in (1, 2, 3)])
    two = make_record([ServerMemory(server_id="b", phase="verify", resident_bytes=9)])
    points = behaviour.memory_points([two, one])
    assert [(point.at_s, point.resident_bytes) for point in points] == [(0.0, 1), (1.0, 2), (2.0, 3)]


def test_memory_goes_through_the_stages_of_one_life() -> None:
    def stage(phase: str, server: str = "a", **fields: Any) -> RunRecord:
        reading = ServerMemory(server_id=server, phase=phase, resident_bytes=1)
        return make_record([reading, reading], run_id=phase, **fields)

    phases = [point.phase for point in behaviour.memory_points([stage("verify"), stage("bench")])]
    assert sorted(phases) == ["bench", "bench", "verify", "verify"]
    url: dict[str, Any] = {"server_id": None, "slug": None}
    apart = [stage("verify", "unmanaged", **url), stage("bench", "unmanaged", **url)]
    assert len(behaviour.memory_points(apart)) == 2  # nobody knows whether it was the same server
    plan = make_record([StagesPlan(stages=())], run_id="r", **url)
    assert len(behaviour.memory_points([plan, *apart])) == 4


def test_the_ladder_names_its_depths() -> None:
    ladder = check(
        "ctx.ladder", metrics={"context_tokens": 8192.0, "prefill_tok_s_at_2000": 500.0, "cached_tokens_at_2000": 0.0}
    )
    depth = check("decode.at_depth", metrics={"depth_tokens": 6000.0, "deep_tok_s": 40.0, "shallow_tok_s": 50.0})
    points = behaviour.context_points(
        [make_record([ladder, depth, check("x", metrics={"prefill_tok_s_at_200": 400.0})])]
    )
    assert [(point.context_tokens, point.ttft_s, point.decode_tok_s) for point in points] == [
        (200, 0.5, None),
        (2000, 4.0, None),
        (6000, None, 40.0),
    ]


def test_long_prompts_and_conversations_are_told_apart() -> None:
    long = PrefillSample(
        regime="r", boot_id="b", target_tokens=9000, prompt_tokens=9000, cached_tokens=0, unseen=True,
        ttft_s=9.0, prefill_tok_s=1000.0, error=None,
    )  # fmt: skip
    warm = PrefillSample(
        regime="r", boot_id="b", target_tokens=9000, prompt_tokens=9000, cached_tokens=8999, unseen=False,
        ttft_s=0.1, prefill_tok_s=None, error=None,
    )  # fmt: skip
    turn = RampTurn(
        session=0, turn=1, prompt_tokens=1000, new_tokens=100, cached_tokens=None, completion_tokens=20,
        ttft_s=0.5, decode_tok_s=60.0, wall_s=1.0, called=True, error=None,
    )  # fmt: skip
    points = behaviour.context_points([make_record([long, warm, turn])])
    assert [(point.series, point.context_tokens) for point in points] == [
        (behaviour.CONVERSATION, 1000),
        (behaviour.FRESH, 9000),
    ]


def test_a_soak_shows_memory_and_whether_the_drafter_tires() -> None:
    turns = [soak_turn(n, resident_bytes=(100 + n) * 2**20, drafts=4, accepted_tokens=12 - n) for n in range(6)]
    record = make_record([drafted(PromptClass.PROSE, 0, 80.0), *turns])
    points = behaviour.memory_points([record])
    assert [point.resident_bytes >> 20 for point in points] == [100, 101, 102, 103, 104, 105]
    found = behaviour.drafting([record])
    assert found is not None
    assert len(found.over_time) == 6
    assert found.over_time[0].mean_length > found.over_time[-1].mean_length
