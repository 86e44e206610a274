"""Each part of a report comes from its records, and from nothing else."""

import pytest
from tests.report.records import check, drafted, full_record, make_record, on_boots, sample

from redline.checks.check import CheckStatus
from redline.launch.outcome import ServerMemory
from redline.report import extract
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


def test_drafting_adds_up_by_place_and_over_time() -> None:
    found = extract.drafting(
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
    assert extract.drafting([make_record([sample(PromptClass.PROSE, 0, 1.0)])]) is None


def test_context_needs_prompts_of_different_sizes() -> None:
    near = make_record([sample(PromptClass.PROSE, n, 50.0) for n in range(4)])
    assert extract.context_points([near]) == ()
    far = make_record([sample(PromptClass.PROSE, 0, 50.0), sample(PromptClass.PROSE, 1, 40.0, prompt_tokens=4000)])
    assert [point.context_tokens for point in extract.context_points([far])] == [40, 4000]


def test_needles_keep_the_worse_verdict() -> None:
    metrics = {"context_tokens": 4096.0, "position_percent": 50.0}
    record = make_record(
        [check("l.a", CheckStatus.FAIL, metrics=metrics), check("l.a", CheckStatus.PASS, metrics=metrics), check("l.b")]
    )
    assert [cell.status for cell in extract.needle_cells([record])] == [CheckStatus.FAIL]


def test_memory_is_of_one_boot_on_one_clock() -> None:
    one = make_record([ServerMemory(server_id="a", phase="verify", resident_bytes=n) for n in (1, 2, 3)])
    two = make_record([ServerMemory(server_id="b", phase="verify", resident_bytes=9)])
    points = extract.memory_points([two, one])
    assert [(point.at_s, point.resident_bytes) for point in points] == [(0.0, 1), (1.0, 2), (2.0, 3)]


def test_a_run_without_payloads_has_no_sections() -> None:
    record = make_record()
    parts = (
        extract.class_speeds,
        extract.check_rows,
        extract.memory_points,
        extract.context_points,
        extract.needle_cells,
        extract.boot_facts,
    )
    assert [len(part([record])) for part in parts] == [0] * 6


def test_a_full_record_fills_them_all() -> None:
    record = full_record()
    assert len(extract.boot_facts([record])[0].stages) == 3
    assert len(extract.needle_cells([record])) == 9
    assert len(extract.memory_points([record])) == 7
