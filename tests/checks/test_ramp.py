"""The ramp's verdict on turns whose costs are known."""

import random
from dataclasses import replace

import pytest

from redline.checks.check import CheckStatus
from redline.checks.ramp import RampTurn, Reuse, judge_ramp

_SIZES = (400, 2200, 500, 3400, 5800, 1100, 7200, 380, 9800, 2700, 5200, 2900)


def _ramp(new_s: float, old_s: float, *, cached: float | None = None, sessions: int = 2) -> list[RampTurn]:
    draw = random.Random(11)
    turns = []
    for session in range(sessions):
        total = 0
        for turn, size in enumerate(_SIZES):
            old, total = total, total + size
            seconds = (0.01 + new_s * size + old_s * old) * draw.uniform(0.97, 1.03)
            turns.append(
                RampTurn(
                    session=session,
                    turn=turn,
                    prompt_tokens=total,
                    new_tokens=size,
                    cached_tokens=None if cached is None else round(old * cached),
                    completion_tokens=40,
                    ttft_s=seconds,
                    decode_tok_s=50.0,
                    wall_s=seconds + 1,
                    called=True,
                    error=None,
                )
            )
    return turns


@pytest.mark.parametrize(
    ("new_s", "old_s", "reuse", "status"),
    [
        (1e-4, 0.0, Reuse.REUSED, CheckStatus.PASS),
        (1e-4, 1e-5, Reuse.REUSED, CheckStatus.PASS),
        (1e-4, 5e-5, Reuse.PARTIAL, CheckStatus.WARN),
        (1e-4, 1e-4, Reuse.ANEW, CheckStatus.FAIL),
    ],
)
def test_known_costs_get_their_verdict(new_s: float, old_s: float, reuse: Reuse, status: CheckStatus) -> None:
    summary = judge_ramp(_ramp(new_s, old_s))
    assert summary.reuse is reuse
    assert summary.results[1].status is status
    assert summary.old_cost is not None
    assert summary.old_cost.value == pytest.approx(old_s, abs=1e-5)


def test_without_token_counts_nothing_is_decided() -> None:
    turns = [replace(turn, prompt_tokens=None, new_tokens=None) for turn in _ramp(1e-4, 1e-4)]
    summary = judge_ramp(turns)
    assert (summary.reuse, summary.cached_share) == (Reuse.UNDETERMINED, None)
    assert "does not report cached tokens" in summary.results[1].message


def test_a_count_that_contradicts_the_clock_is_named() -> None:
    summary = judge_ramp(_ramp(1e-4, 1e-4, cached=0.99))
    assert summary.reuse is Reuse.ANEW
    assert "contradict" in summary.results[1].message
    assert "contradict" not in judge_ramp(_ramp(1e-4, 0.0, cached=0.99)).results[1].message


def test_a_failed_turn_fails_the_ramp_and_not_the_cache() -> None:
    turns = _ramp(1e-4, 0.0)
    turns.append(replace(turns[-1], ttft_s=None, decode_tok_s=None, error="status: out of memory"))
    errors, cache = judge_ramp(turns).results
    assert (errors.status, cache.status) == (CheckStatus.FAIL, CheckStatus.PASS)


def test_nothing_done_is_open() -> None:
    assert {row.status for row in judge_ramp([]).results} == {CheckStatus.INCONCLUSIVE}
