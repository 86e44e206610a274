"""Markdown to paste: golden, and unable to do anything but be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from tests.report.records import SLUG, check, failed_record, full_record, make_record, on_boots

from redline.checks.check import CheckStatus
from redline.launch.outcome import ServerFailed
from redline.record.reading import RunRecord
from redline.report.build import build_report, build_rig_report
from redline.report.extract import failed_boot
from redline.report.markdown import code, render_markdown
from redline.report.model import Fact
from redline.report.row import benchmark_rows, cell

MADE_AT = "2026-11-29T20:00:00+00:00"


def markdown(*records: RunRecord) -> str:
    return render_markdown(build_report(records, made_at=MADE_AT, redacted=True))


def test_a_full_report(snapshot: SnapshotAssertion) -> None:
    assert markdown(full_record()) == snapshot


def test_two_tiers(snapshot: SnapshotAssertion) -> None:
    assert markdown(*on_boots(3), *on_boots(1, slug="llamacpp/smollm2-135m-cpu-fast")) == snapshot


def test_a_failed_boot(snapshot: SnapshotAssertion) -> None:
    assert markdown(failed_record()) == snapshot


def test_a_rig_on_which_nothing_boots(snapshot: SnapshotAssertion) -> None:
    (failed,) = failed_record().payloads(ServerFailed)
    facts = [Fact("GPUs", "2x RTX 3090 (24 GiB)"), Fact("Interconnect", "not recorded")]
    boots = [failed_boot(failed, SLUG, MADE_AT)]
    model = build_rig_report(facts, "2x RTX 3090 (24 GiB)", boots, made_at=MADE_AT, redacted=True)
    assert render_markdown(model) == snapshot


def test_the_row_of_the_seeds_table(snapshot: SnapshotAssertion) -> None:
    assert benchmark_rows(build_report([full_record()], made_at=MADE_AT, redacted=True)) == snapshot


def test_log_lines_cannot_leave_their_fence() -> None:
    failed = ServerFailed(
        server_id="x", reason="r", cause=None, evidence=None, remedies=(), log_tail=("```", "````", "# not a heading")
    )
    text = markdown(make_record([failed], server_id=None))
    fence = "`````"
    inside = text.split(f"{fence}text\n")[1].split(f"\n{fence}\n")[0]
    assert inside == "```\n````\n# not a heading"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", "a \\| b"),
        ("<script>", "&lt;script&gt;"),
        ("[x](http://evil)", "\\[x\\](http://evil)"),
        ("`code` *bold* _it_", "\\`code\\` \\*bold\\* \\_it\\_"),
        ("line\nbreak", "line break"),
        ("@someone #123", "@\u2060someone #\u2060123"),
    ],
)
def test_cells_are_plain(text: str, shown: str) -> None:
    assert cell(text) == shown


@given(st.text(max_size=60))
def test_code_spans_close_where_they_should(text: str) -> None:
    span = code(text)
    ticks = len(span) - len(span.lstrip("`"))
    assert span.endswith("`" * ticks)
    assert "`" * ticks not in span[ticks:-ticks] or not span[ticks:-ticks].strip("`")


def test_hostile_checks_stay_in_their_row() -> None:
    text = markdown(make_record([check("chat.basic", CheckStatus.FAIL, "x | y\n| evil | row |\n</details>")]))
    rows = [line for line in text.splitlines() if line.startswith("| basic")]
    assert len(rows) == 1
    assert "</details>" not in rows[0]
