"""Rates on the overlap window of streams whose every chunk is known, and the verdicts on them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redline.bench.concurrency import (
    ConcurrencyPlan,
    Round,
    judge_concurrency,
    overlap_ns,
    round_of,
    stalled,
    tokens_within,
)
from redline.checks.check import CheckStatus
from redline.probe.exchange import Chunk, ErrorKind, Exchange, ExchangeError, Usage

_MS = 1_000_000


def _stream(start_ms: int, tokens: int, step_ms: int) -> Exchange:
    """Return a stream of one token a chunk, four characters each, the first at `start_ms`."""
    stamps = [(start_ms + index * step_ms) * _MS for index in range(tokens)]
    return Exchange(
        sent_ns=0,
        first_content_ns=stamps[0],
        last_token_ns=stamps[-1],
        end_ns=stamps[-1] + _MS,
        chunks=tuple(Chunk(at_ns=at, kind="content", characters=4) for at in stamps),
        usage=Usage(prompt_tokens=10, completion_tokens=tokens),
        finish_reason="stop",
    )


def test_the_window_is_where_all_streams_decode() -> None:
    early, late = _stream(100, 100, 10), _stream(500, 100, 10)
    assert overlap_ns([early, late]) == (500 * _MS, 1090 * _MS)
    assert overlap_ns([early, _stream(2000, 10, 10)]) is None


def test_the_aggregate_is_that_of_the_window_and_not_of_the_wall() -> None:
    row = round_of(2, 0, [_stream(100, 100, 10), _stream(500, 100, 10)], 0)
    # Two streams of 100 tokens a second; over the wall it would be 200 tokens in 1.5 s.
    assert row.aggregate_tok_s == pytest.approx(200.0, rel=0.01)
    assert row.per_stream_tok_s == (100.0, 100.0)


def test_tokens_are_the_servers_count_and_not_chunks() -> None:
    stream = replace(_stream(0, 50, 10), usage=Usage(completion_tokens=200))
    assert tokens_within(stream, -1, 10**12) == 200
    assert tokens_within(replace(stream, usage=Usage()), -1, 10**12) is None


def test_a_failed_stream_leaves_no_aggregate() -> None:
    broken = Exchange(sent_ns=0, end_ns=1, error=ExchangeError(kind=ErrorKind.STATUS, message="out of memory"))
    row = round_of(2, 0, [_stream(0, 50, 10), broken], 0)
    assert row.aggregate_tok_s is None
    assert row.errors == ("status: out of memory",)


def test_a_stream_that_stands_still_is_seen() -> None:
    steady = _stream(0, 50, 10)
    late = tuple(
        replace(chunk, at_ns=chunk.at_ns + (400 * _MS if index > 20 else 0))
        for index, chunk in enumerate(steady.chunks)
    )
    assert not stalled(steady)
    assert stalled(replace(steady, chunks=late))


def _rounds(rates: Mapping[int, tuple[float, ...]], **changes: Any) -> list[Round]:
    row = Round(
        streams=1,
        number=0,
        aggregate_tok_s=None,
        window_s=1.0,
        per_stream_tok_s=(),
        ttft_s=(0.1,),
        stalled=0,
        preemptions=0,
        errors=(),
    )
    return [
        replace(
            row, streams=streams, number=number, aggregate_tok_s=rate, per_stream_tok_s=(rate / streams,), **changes
        )
        for streams, values in rates.items()
        for number, rate in enumerate(values)
    ]


_GOOD = {1: (100.0, 101.0, 99.0), 4: (300.0, 303.0, 297.0)}


def _status(rounds: list[Round], slots: int | None = 4) -> dict[str, CheckStatus]:
    summary = judge_concurrency(rounds, ConcurrencyPlan(levels=(1, 4), slots=slots))
    return {row.check_id.removeprefix("conc."): row.status for row in summary.results}


def test_a_server_that_scales_passes() -> None:
    assert set(_status(_rounds(_GOOD)).values()) == {CheckStatus.PASS}


def test_falling_together_is_found_only_where_intervals_part() -> None:
    assert _status(_rounds({1: (100.0, 101.0, 99.0), 4: (80.0, 81.0, 79.0)}))["scaling"] is CheckStatus.FAIL
    assert _status(_rounds({1: (100.0, 101.0, 99.0), 4: (80.0, 120.0, 60.0)}))["scaling"] is CheckStatus.PASS


def test_preemption_fails_within_the_slots_only() -> None:
    assert _status(_rounds(_GOOD, preemptions=2))["fit"] is CheckStatus.FAIL
    rounds = [replace(row, preemptions=3 if row.streams == 4 else 0) for row in _rounds(_GOOD)]
    assert _status(rounds, slots=2)["fit"] is CheckStatus.PASS


def test_standing_still_is_a_warning_and_errors_fail() -> None:
    rounds = [replace(row, stalled=1 if row.streams == 4 else 0, preemptions=None) for row in _rounds(_GOOD)]
    assert _status(rounds)["fit"] is CheckStatus.WARN
    assert _status(_rounds(_GOOD, errors=("timeout: x",)))["errors"] is CheckStatus.FAIL
    assert set(_status([]).values()) == {CheckStatus.INCONCLUSIVE}
