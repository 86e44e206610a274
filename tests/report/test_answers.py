"""The six answers are never empty, and say of a record what it holds and what it lacks."""

import pytest
from tests.report.records import SLUG, check, failed_record, full_record, make_record, on_boots, sample

from redline.checks.check import CheckStatus
from redline.launch.outcome import ServerFailed
from redline.record.reading import RunRecord
from redline.report.answers import short_names, title_of
from redline.report.build import build_report, build_rig_report
from redline.report.extract import failed_boot
from redline.report.model import ReportModel, Tone
from redline.workload.prompts import PromptClass

FAST = "llamacpp/smollm2-135m-cpu-fast"


def report(*records: RunRecord) -> ReportModel:
    return build_report(records, made_at="2026-11-29T20:00:00+00:00", redacted=True)


def rig_report(*boots: RunRecord) -> ReportModel:
    facts = [
        failed_boot(found, SLUG, "2026-11-29T19:52:00+00:00") for boot in boots for found in boot.payloads(ServerFailed)
    ]
    return build_rig_report((), "2 CPUs, no GPU", facts, made_at="2026-11-29T20:00:00+00:00", redacted=True)


@pytest.mark.parametrize(
    "model",
    [
        report(full_record()),
        report(failed_record()),
        report(make_record()),
        report(make_record(finished=False)),
        report(make_record([check("chat.basic")], slug=None, engine=None, engine_version=None, rig={}, resolved={})),
        report(*on_boots(3), *on_boots(3, slug=FAST)),
        rig_report(),
        rig_report(failed_record()),
    ],
    ids=["full", "failed", "empty", "cut off", "endpoint", "two tiers", "rig", "rig with a failed boot"],
)
def test_all_six_are_filled(model: ReportModel) -> None:
    answers = model.answers.in_order
    assert [answer.question for answer in answers] == [
        "What ran",
        "On what",
        "What was proved",
        "What was not",
        "How sure",
        "What next",
    ]
    for answer in answers:
        assert len(answer.words.split()) >= 4
        assert answer.words.endswith((".", ")"))
        assert ".." not in answer.words


def test_failures_and_gaps_are_named() -> None:
    answers = report(full_record()).answers
    assert "acceptance failed: nothing was drafted." in answers.not_proved.words.lower()
    assert "Not asked although it should have been: split." in answers.not_proved.words
    assert "Not offered: call." in answers.not_proved.words
    assert "Not looked at: endurance and quality of answers." in answers.not_proved.words
    assert "1 request gave no rate." in answers.not_proved.words
    assert answers.not_proved.tone is Tone.BAD
    assert "redline verify" in answers.what_next.commands[0]


def test_a_failed_boot_says_why_and_what_to_do() -> None:
    answers = report(failed_record()).answers
    assert "did not start in 1 attempt" in answers.what_ran.words
    assert "not enough memory" in answers.not_proved.words
    assert "smaller context" in answers.what_next.words
    assert answers.proved.words.startswith("Nothing")


def test_certainty_follows_the_boots() -> None:
    one, three = report(*on_boots(1)).answers.how_sure, report(*on_boots(3, step=0.1)).answers.how_sure
    assert "Another boot may differ" in one.words
    assert one.tone is Tone.WARN
    assert "The intervals span boots" in three.words
    assert three.tone is Tone.GOOD


def test_wide_intervals_are_called_wide() -> None:
    wild = make_record([sample(PromptClass.PROSE, n, rate) for n, rate in enumerate((10.0, 100.0, 20.0))])
    assert "too wide to quote the mean alone" in report(wild).answers.how_sure.words


def test_what_comes_next_follows_from_what_is_there() -> None:
    complete = [*on_boots(3, step=0.1), make_record([check("chat.basic")], server_id="boot-0")]
    assert report(*complete).answers.what_next.commands == (f"redline report {SLUG} --html report.html",)
    scattered = [*on_boots(3, step=40.0), make_record([check("chat.basic")], server_id="boot-0")]
    assert "measure again while nothing else runs" in report(*scattered).answers.what_next.words


def test_an_experiment_is_labelled() -> None:
    labelled = make_record([sample(PromptClass.PROSE, n, 50.0 + n) for n in range(3)], labels=("drafter-depth",))
    assert "Made with a rule set aside: drafter-depth." in report(labelled).answers.how_sure.words


def test_two_tiers_are_told_apart_briefly() -> None:
    bad = make_record([check("chat.basic", CheckStatus.FAIL, "it is mute")], slug=FAST, server_id="other")
    model = report(*on_boots(1), bad)
    assert model.title == "llamacpp/smollm2-135m-cpu: fast and superfast"
    assert model.answers.not_proved.words.startswith("Failed: basic (fast).")
    assert any(point.startswith("superfast: ") for point in model.answers.proved.points)


def test_short_names_stay_unambiguous() -> None:
    subjects = report(*on_boots(1), *on_boots(1, slug=FAST), *on_boots(1, slug="vllm/qwen38-27b-dual-fast")).subjects
    assert len(set(short_names(subjects))) == 3
    assert short_names(subjects[:1]) == (SLUG,)
    assert title_of(()) == "no run"


def test_a_run_cut_off_is_said() -> None:
    assert (
        "1 run did not reach the end: 2026-11-29-a1b." in report(make_record(finished=False)).answers.not_proved.words
    )


@pytest.mark.parametrize(
    ("check_id", "command"),
    [
        ("chat.basic", "redline verify"),
        ("boot.log_assertions", "redline verify --suite full"),
        ("ctx.ceiling", "redline verify --suite stress"),
        ("soak.errors", "redline soak"),
        ("ramp.cache_reuse", "redline ramp"),
        ("of.another.redline", "redline verify"),
    ],
)
def test_a_failed_check_is_asked_again_by_the_cheapest_command(check_id: str, command: str) -> None:
    model = report(make_record([check(check_id, CheckStatus.FAIL, "no")]))
    assert f"{command} {SLUG}" in model.answers.what_next.commands
