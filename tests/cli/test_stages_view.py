"""The table of a whole report's stages, as it stands in the middle, at the beginning and at the end."""

from syrupy.assertion import SnapshotAssertion

from redline.checks.stages import FULL, Stage, StageEnded, StageState
from redline.cli.stages_view import Standing, table_lines
from redline.ops.stages import StageProgress

USUAL = {Stage.VERIFY: 40.0, Stage.STRESS: 300.0, Stage.SOAK: 600.0, Stage.BENCH: 500.0, Stage.RAMP: 120.0}


def ended(
    stage: Stage, state: StageState, reason: str, seconds: float = 42.0, earlier: str | None = None
) -> StageEnded:
    return StageEnded(stage=stage, state=state, reason=reason, seconds=seconds, earlier=earlier)


def table(standing: Standing, now_s: float = 0.0) -> str:
    return "\n".join(table_lines(standing, now_s))


def test_in_the_middle(snapshot: SnapshotAssertion) -> None:
    done = [
        ended(Stage.VERIFY, StageState.PASSED, "7 of 7 applicable passed", earlier="2026-11-29-a1b"),
        ended(Stage.STRESS, StageState.FAILED, "3 of 4 applicable passed; not: ctx.ceiling, " + "x" * 80, 303.0),
    ]
    running = StageProgress(stage=Stage.SOAK, number=20, total=50, words="session 5")
    standing = Standing(FULL, USUAL, {row.stage: row for row in done}, running, begun_s=100.0)
    assert table(standing, 340.0) == snapshot


def test_at_the_beginning_without_a_past(snapshot: SnapshotAssertion) -> None:
    running = StageProgress(stage=Stage.VERIFY, number=0, total=None, words="")
    assert table(Standing(FULL, {}, running=running)) == snapshot


def test_at_the_end(snapshot: SnapshotAssertion) -> None:
    states = (StageState.PASSED, StageState.OPEN, StageState.BROKEN, StageState.NOT_RUN, StageState.NOT_RUN)
    rows = [
        ended(stage, state, f"because {number}") for number, (stage, state) in enumerate(zip(FULL, states, strict=True))
    ]
    assert table(Standing(FULL, USUAL, {row.stage: row for row in rows})) == snapshot


def test_a_line_never_holds_control_characters_or_breaks() -> None:
    evil = ended(Stage.VERIFY, StageState.BROKEN, "one\ntwo\r\tthree")
    (line, *_) = table_lines(Standing((Stage.VERIFY,), {}, {Stage.VERIFY: evil}), 0.0)
    assert line.endswith("one two three")
