"""Each part of a report comes from its records, and from nothing else."""

from dataclasses import replace

import pytest
from tests.report.records import SLUG, check, full_record, make_record, on_boots, sample

from redline.checks.check import CheckStatus
from redline.checks.stages import Stage, StageBegan, StagesPlan
from redline.record.reading import RunRecord
from redline.report import behaviour, extract
from redline.workload.prompts import PromptClass


def test_speeds_are_means_over_requests_in_one_boot() -> None:
    (row,) = extract.class_speeds(
        [make_record([sample(PromptClass.PROSE, n, rate) for n, rate in enumerate((10, 20, 30))])]
    )
    assert row.decode_tok_s is not None
    assert (row.decode_tok_s.mean, row.decode_tok_s.n, row.over_boots) == (20.0, 3, False)
    # Student's t for 2 degrees of freedom: 4.3027 * 10 / sqrt(3)
    assert row.decode_tok_s.half_width == pytest.approx(24.84, abs=0.01)


def test_from_three_boots_on_the_interval_spans_their_means() -> None:
    (row,) = extract.class_speeds(on_boots(3, step=10.0))
    assert row.decode_tok_s is not None
    assert (row.boots, row.requests, row.over_boots) == (3, 12, True)
    assert row.decode_tok_s.n == 3
    assert row.decode_tok_s.mean == pytest.approx(91.5)


def test_regimes_and_classes_are_never_mixed() -> None:
    record = make_record(
        [
            sample(PromptClass.PROSE, 0, 10.0),
            sample(PromptClass.PROSE, 0, 90.0, regime="up-1"),
            sample(PromptClass.CODE, 0, 50.0),
        ]
    )
    rows = extract.class_speeds([record])
    assert [(row.regime, row.prompt_class) for row in rows] == [
        ("quick-1", "prose"),
        ("up-1", "prose"),
        ("quick-1", "code"),
    ]
    assert [row.decode_tok_s.mean for row in rows if row.decode_tok_s] == pytest.approx([10.0, 90.0, 50.0])


def test_a_failed_request_is_counted_and_is_no_number() -> None:
    (row,) = extract.class_speeds(
        [make_record([sample(PromptClass.PROSE, 0, 10.0), sample(PromptClass.PROSE, 1, None)])]
    )
    assert (row.requests, row.failed) == (2, 1)
    assert row.decode_tok_s is not None
    assert row.decode_tok_s.n == 1


def test_checks_keep_their_last_verdict_and_their_history() -> None:
    first = make_record([check("chat.basic", CheckStatus.FAIL)], run_id="a")
    second = make_record([check("chat.basic")], run_id="b")
    (row,) = extract.check_rows([first, second])
    assert (row.status, row.asked, row.passed, row.run_id) == (CheckStatus.PASS, 2, 1, "b")


def test_a_run_without_payloads_has_no_sections() -> None:
    record = make_record()
    parts = (
        extract.class_speeds,
        extract.check_rows,
        extract.prefill_rows,
        extract.stream_levels,
        extract.endurance,
        extract.arm_verdicts,
        extract.boot_facts,
        behaviour.memory_points,
        behaviour.context_points,
        behaviour.needle_cells,
    )
    assert [len(part([record])) for part in parts] == [0] * 10
    assert behaviour.drafting([record]) is None


def test_a_full_record_fills_them_all() -> None:
    record = full_record()
    assert len(extract.boot_facts([record])[0].stages) == 3
    assert len(behaviour.needle_cells([record])) == 9
    assert len(behaviour.memory_points([record])) == 7


def test_a_stage_under_way_is_told_from_one_cut_off() -> None:
    rows = [StagesPlan(stages=(Stage.VERIFY, Stage.RAMP)), StageBegan(stage=Stage.VERIFY, run_id="r1")]
    record = make_record(rows, finished=False)
    for writing, expected in (
        (True, [("not_run", "under way"), ("not_run", "under way")]),
        (False, [("interrupted", "cut off"), ("not_run", "the report was cut off before it")]),
    ):
        found = extract.stage_rows([replace(record, writing=writing)])
        assert [(row.state.value, row.reason) for row in found] == expected
        assert {row.subject for row in found} == {SLUG}
    assert extract.stage_rows([make_record()]) == ()


def test_the_last_whole_report_of_each_tier_shows_its_stages() -> None:
    def whole(run_id: str, slug: str) -> RunRecord:
        rows = [StagesPlan(stages=(Stage.VERIFY,)), StageBegan(stage=Stage.VERIFY, run_id=f"{run_id}-verify")]
        return make_record(rows, run_id=run_id, slug=slug, finished=False)

    found = extract.stage_rows([whole("r1", "a/b"), whole("r2", "a/c"), whole("r3", "a/b")])
    assert {row.subject: row.run_id for row in found} == {"a/b": "r3-verify", "a/c": "r2-verify"}
    assert len(found) == 2
