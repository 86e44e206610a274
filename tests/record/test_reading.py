"""Records are read whatever state their folders are in: what cannot be read is named, and the rest is used."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from redline.checks.check import CheckResult, CheckStatus
from redline.record.identity import make_identity
from redline.record.reading import is_being_written, load_run, read_events
from redline.record.redact import Redactor
from redline.record.run import create_run

MakeRun = Callable[..., Path]


def check(message: str = "fine", status: CheckStatus = CheckStatus.PASS) -> CheckResult:
    return CheckResult(check_id="chat.basic", title="basic answer", status=status, message=message, failure_class="x")


def test_a_whole_run_comes_back_typed(make_run: MakeRun) -> None:
    record = load_run(make_run(payloads=[check(), check("again")], summary="all good"))
    assert [result.message for result in record.payloads(CheckResult)] == ["fine", "again"]
    assert (record.outcome, record.problems) == ("complete", ())
    assert record.finished is not None
    assert record.finished.summary == "all good"


@pytest.mark.parametrize("cut_bytes", [1, 2, 40])
def test_a_torn_last_line_costs_that_line_only(make_run: MakeRun, cut_bytes: int) -> None:
    folder = make_run(payloads=[check(), check("second")], outcome=None)
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-cut_bytes])
    record = load_run(folder)
    whole = cut_bytes == 1  # only the line's end is missing: the event itself is whole
    assert len(record.payloads(CheckResult)) == (2 if whole else 1)
    assert record.problems == (() if whole else ("the last line of events.jsonl is torn (line 2)",))
    assert record.outcome == "cut off"


def test_a_bad_line_in_the_middle_costs_that_line_only(make_run: MakeRun) -> None:
    folder = make_run(payloads=[check(), check("second")])
    events = folder / "events.jsonl"
    lines = events.read_text().splitlines()
    events.write_text("\n".join([lines[0], "\x00garbage {", "[1, 2]", *lines[1:]]) + "\n")
    record = load_run(folder)
    assert len(record.payloads(CheckResult)) == 2
    assert record.outcome == "complete"
    assert record.problems == ("line 2 of events.jsonl is no event", "line 3 of events.jsonl is no event")


def test_newer_kinds_versions_and_forms_are_counted_and_left_out(make_run: MakeRun) -> None:
    folder = make_run(payloads=[check()])
    events = folder / "events.jsonl"
    base = json.loads(events.read_text().splitlines()[0])
    newer = [
        {**base, "kind": "dream.sample"},
        {**base, "kind": "dream.sample"},
        {**base, "payload_version": 99},
        {**base, "payload": {**base["payload"], "status": "excellent"}},
        {**base, "kind": "<script>alert(1)</script>"},
    ]
    with events.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in newer)
    record = load_run(folder)
    assert len(record.payloads(CheckResult)) == 1
    assert [problem.partition(":")[0] for problem in record.problems] == [
        "2 events of a kind this redline does not know",
        "1 event of check.result version 99; this redline reads up to 1",
        "1 event of check.result not in its form",
        "1 event of a kind this redline does not know",
    ]
    assert "script" not in " ".join(record.problems)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "manifest.json is missing"),
        ('{"schema_version": 1, "run', "manifest.json is torn or no JSON"),
        ('{"schema_version": 7, "planet": "Mars"}', "its manifest has schema 7; this redline reads 1"),
        ("[]", "its manifest has schema None; this redline reads 1"),
        ('{"schema_version": 1}', "its manifest is not of schema 1: run_id: Field required"),
    ],
)
def test_an_unreadable_manifest_is_explained(make_run: MakeRun, text: str | None, why: str) -> None:
    folder = make_run()
    (folder / "manifest.json").unlink()
    if text is not None:
        (folder / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        load_run(folder)
    assert str(caught.value) == why


def test_missing_events_are_said(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "events.jsonl").unlink()
    assert load_run(folder).problems == ("events.jsonl is missing",)


def test_a_run_under_way_is_told_from_one_cut_off(runs_dir: Path) -> None:
    run = create_run(runs_dir, "bench", url=None)
    run.append(check())
    assert is_being_written(run.directory)
    assert load_run(run.directory).outcome == "running"
    with run:
        pass
    assert not is_being_written(run.directory)
    assert load_run(run.directory).outcome == "cut off"


def test_with_a_redactor_only_what_may_be_shared_is_read(make_run: MakeRun) -> None:
    folder = make_run(payloads=[check("see /home/marta/x")], argv=("serve", "--api-key", "abc"), summary="marta did it")
    record = load_run(folder, Redactor(make_identity(["marta"], [], ["/home/marta"])))
    assert record.manifest.argv == ("serve", "--api-key", "<secret>")
    assert record.payloads(CheckResult)[0].message == "see ~/x"
    assert record.finished is not None
    assert record.finished.summary == "<user> did it"


def test_a_line_too_long_is_left_out(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.record.reading._MAX_LINE_BYTES", 1000)
    record = load_run(make_run(payloads=[check(), check("x" * 5000), check("after")]))
    assert [result.message for result in record.payloads(CheckResult)] == ["fine", "after"]
    assert len(record.problems) == 1
    assert "longer than" in record.problems[0]


def test_envelopes_can_be_read_alone(make_run: MakeRun) -> None:
    assert [event.kind for event in read_events(make_run(payloads=[check()]))] == ["check.result", "run.finished"]
