"""The soak's verdicts on turns whose truth is known."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.checks.check import CheckStatus
from redline.checks.soak import Outcome, SoakDied, SoakTurn
from redline.checks.soak_verdict import SoakSummary, judge_soak
from redline.units import MIB

_TURN = SoakTurn(
    session=0,
    turn=0,
    shape="turn-0",
    outcome=Outcome.ANSWERED,
    constrained=True,
    thinking=False,
    finish_reason="stop",
    prompt_tokens=1000,
    cached_tokens=0,
    completion_tokens=100,
    decode_tok_s=50.0,
    ttft_s=0.2,
    wall_s=2.0,
    drafts=40,
    draft_tokens=120,
    accepted_tokens=60,
    resident_bytes=1000 * MIB,
    gpu_bytes=None,
    process="10/20",
    counters_fell=False,
    invented_calls=0,
    repaired_calls=0,
    error=None,
)


def _soak(sessions: int = 12, *, leak_mib: float = 0.0, slower: float = 0.0, noise_mib: float = 0.0) -> list[SoakTurn]:
    draw = random.Random(7)
    return [
        replace(
            _TURN,
            session=session,
            turn=turn,
            shape=f"turn-{turn}",
            decode_tok_s=(50.0 + 10 * turn) * (1 - slower) ** session * draw.uniform(0.98, 1.02),
            accepted_tokens=draw.randint(57, 63),
            resident_bytes=round((1000 + leak_mib * session + draw.uniform(-noise_mib, noise_mib)) * MIB),
        )
        for session in range(sessions)
        for turn in range(5)
    ]


def _status(summary: SoakSummary) -> dict[str, CheckStatus]:
    return {row.check_id.removeprefix("soak."): row.status for row in summary.results}


def test_a_steady_server_passes_and_the_bound_is_stated() -> None:
    summary = judge_soak(_soak())
    assert set(_status(summary).values()) == {CheckStatus.PASS}
    assert "0 of 60 turns in 12 sessions failed; the true rate is at most 4.9%" in summary.statement


def test_a_leak_is_found_in_noise() -> None:
    assert _status(judge_soak(_soak(15, leak_mib=20, noise_mib=50)))["trend.memory"] is CheckStatus.FAIL
    assert _status(judge_soak(_soak(15, noise_mib=5)))["trend.memory"] is CheckStatus.PASS


def test_a_slow_down_is_found_although_shapes_differ_and_some_rates_lack() -> None:
    turns = [
        replace(turn, decode_tok_s=None) if (turn.session + turn.turn) % 3 == 0 else turn for turn in _soak(slower=0.05)
    ]
    summary = judge_soak(turns)
    assert _status(summary)["trend.rate"] is CheckStatus.FAIL
    assert summary.rate is not None
    assert summary.rate.ratio == pytest.approx(0.95**8, rel=0.05)


def test_falling_acceptance_is_found() -> None:
    turns = [replace(turn, accepted_tokens=60 - turn.session * 5) for turn in _soak()]
    assert _status(judge_soak(turns))["trend.acceptance"] is CheckStatus.FAIL


def test_few_sessions_are_open_and_not_well() -> None:
    status = _status(judge_soak(_soak(4)))
    assert {status["trend.memory"], status["trend.rate"]} == {CheckStatus.INCONCLUSIVE}


def test_no_turns_are_open() -> None:
    assert _status(judge_soak([]))["errors"] is CheckStatus.INCONCLUSIVE


def test_a_session_that_crashed_is_no_baseline() -> None:
    crashed = replace(_TURN, outcome=Outcome.ERROR, resident_bytes=1 * MIB, session=0, error="connect: refused")
    later = [replace(turn, session=turn.session + 1) for turn in _soak()]
    status = _status(judge_soak([crashed, *later]))
    assert status["errors"] is CheckStatus.FAIL
    assert status["trend.memory"] is CheckStatus.PASS


@pytest.mark.parametrize(
    ("outcome", "constrained", "words"),
    [
        (Outcome.EMPTY_NO_TOKENS, False, "stopped without a token"),
        (Outcome.EMPTY_NO_TOKENS, True, "only where tools or a schema were in force"),
        (Outcome.EMPTY_CLOSED, True, "the stream closed without a finish"),
        (Outcome.EMPTY_REASONING, True, "the budget went into reasoning"),
    ],
)
def test_empty_answers_are_told_apart_by_cause(outcome: Outcome, constrained: bool, words: str) -> None:
    turns = [
        replace(turn, outcome=outcome, constrained=constrained)
        if turn.turn in (1, 2)
        else replace(turn, constrained=False)
        for turn in _soak()
    ]
    row = next(row for row in judge_soak(turns).results if row.check_id == "soak.silent_empty")
    assert (row.status, words in row.message) == (CheckStatus.FAIL, True)


def test_a_puzzle_that_thinks_its_budget_away_is_a_warning() -> None:
    turns = [
        replace(turn, outcome=Outcome.EMPTY_REASONING, thinking=True) if turn.turn == 4 else turn for turn in _soak()
    ]
    assert _status(judge_soak(turns))["silent_empty"] is CheckStatus.WARN


def test_another_process_is_a_restart_and_death_is_death() -> None:
    turns = [replace(turn, process="99/99") if turn.session > 5 else turn for turn in _soak()]
    row = judge_soak(turns).results[0]
    assert (row.status, row.failure_class) == (CheckStatus.FAIL, "engine restarted")
    row = judge_soak(_soak(3), SoakDied(session=2, turn=4, message="refused")).results[0]
    assert (row.status, row.failure_class) == (CheckStatus.FAIL, "engine died")


def test_counters_that_start_again_are_no_restart() -> None:
    turns = [replace(turn, counters_fell=turn.turn == 3) for turn in _soak()]
    row = judge_soak(turns).results[0]
    assert row.status is CheckStatus.PASS
    assert "12 times in one process" in row.message


@given(st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=60))
def test_whatever_the_turns_failures_are_counted_once(outcomes: list[Outcome]) -> None:
    turns = [
        replace(_TURN, session=index // 5, turn=index % 5, shape=f"turn-{index % 5}", outcome=outcome)
        for index, outcome in enumerate(outcomes)
    ]
    summary = judge_soak(turns)
    assert summary.failures is not None
    assert summary.failures.failures == sum(outcome is not Outcome.ANSWERED for outcome in outcomes)
    assert sum(summary.empty_by_cause.values()) <= summary.failures.failures
