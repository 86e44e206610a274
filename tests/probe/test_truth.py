"""The written truth through the parser: what is measured is what the definitions say of the stamps, to the nanosecond.

The bytes are those that a client received; their stamps are replaced by those that the engine took when it wrote each
chunk. What then differs from the live measurement is the wire.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from redline.fake.spawn import fake_engine
from redline.fake.truth import Answered, Write, read_truth
from redline.probe.definitions import MIN_DECODE_TOKENS, decode_tok_s, ttft_s
from redline.probe.exchange import Exchange
from redline.probe.parse import read_exchange
from redline.probe.wire import Capture, Segment, exchange_bytes

# A loopback write is received within microseconds; a busy machine may hold the client back for a scheduler's turn.
_WIRE_S: Final = 0.5


@dataclass(frozen=True)
class _Seen:
    live: Exchange
    written: Exchange
    answered: Answered
    chunks: list[Write]
    sent_ns: int


def _seen(tmp_path: Path, scenario: str, text: str, *settings: str, **extra: Any) -> _Seen:
    truth = tmp_path / "truth.jsonl"
    body = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 80,
        "stream": True,
        "stream_options": {"include_usage": True},
        **extra,
    }
    with fake_engine(scenario, tmp_path / "log", ("--truth", str(truth), *settings)) as fake:
        url = f"{fake.url}/v1/chat/completions"
        capture = asyncio.run(exchange_bytes(url, json.dumps(body).encode(), timeout_s=20))
    writes = [event for event in read_truth(truth) if isinstance(event, Write)]
    answered = next(event for event in read_truth(truth) if isinstance(event, Answered))
    return _Seen(
        live=read_exchange(capture),
        written=read_exchange(_as_written(capture, writes)),
        answered=answered,
        chunks=[write for write in writes if write.tokens],
        sent_ns=capture.sent_ns,
    )


def _as_written(capture: Capture, writes: list[Write]) -> Capture:
    """Return the capture cut where the engine cut its writes, each piece stamped when it was written.

    The head is one write; every event of the body is one chunk of the transfer, and one write.
    """
    raw = b"".join(segment.data for segment in capture.segments)
    head, _, body = raw.partition(b"\r\n\r\n")
    pieces = [head + b"\r\n\r\n"]
    while body:
        line, _, rest = body.partition(b"\r\n")
        size = int(line, 16)
        pieces.append(line + b"\r\n" + rest[: size + 2])
        body = rest[size + 2 :]
    stamps = [write.after_ns for write in writes]
    stamps += [stamps[-1]] * (len(pieces) - len(stamps))  # [DONE] and the end of the transfer
    segments = tuple(Segment(at, piece) for at, piece in zip(stamps, pieces, strict=False))
    return Capture(capture.sent_ns, stamps[-1], segments)


_SCENARIOS = pytest.mark.parametrize(
    ("scenario", "dialect"),
    [
        (scenario, dialect)
        for scenario in ("healthy", "multi-token-chunks", "reasoning-first", "healthy-text-only")
        for dialect in ("vllm", "llamacpp")
    ],
)


@_SCENARIOS
def test_definitions_on_written_stamps_are_exact(tmp_path: Path, scenario: str, dialect: str) -> None:
    seen = _seen(tmp_path, scenario, "Tell me a story about the sea.", "--dialect", dialect)
    first, last = seen.chunks[0], seen.chunks[-1]
    assert [chunk.at_ns for chunk in seen.written.chunks] == [write.after_ns for write in seen.chunks]
    assert ttft_s(seen.written) == (first.after_ns - seen.sent_ns) / 1e9
    assert seen.answered.completion_tokens >= MIN_DECODE_TOKENS
    rate = (seen.answered.completion_tokens - 1) * 1e9 / (last.after_ns - first.after_ns)
    assert decode_tok_s(seen.written) == pytest.approx(rate, rel=1e-12)


@_SCENARIOS
def test_the_live_measurement_differs_by_the_wire_alone(tmp_path: Path, scenario: str, dialect: str) -> None:
    seen = _seen(tmp_path, scenario, "Tell me a story about the sea.", "--dialect", dialect)
    for live, write in zip(seen.live.chunks, seen.chunks, strict=True):
        assert write.before_ns <= live.at_ns <= write.after_ns + _WIRE_S * 1e9
    live_first, written_first = ttft_s(seen.live), ttft_s(seen.written)
    assert live_first is not None
    assert written_first is not None
    assert abs(live_first - written_first) <= _WIRE_S


def test_a_chunk_is_not_a_token(tmp_path: Path) -> None:
    """Eight tokens a chunk after the first, which the engine sends at once: counting chunks would say an eighth."""
    seen = _seen(tmp_path, "multi-token-chunks", "Tell me a story about the sea.")
    assert (seen.chunks[0].tokens, seen.chunks[1].tokens) == (1, 8)
    window_s = (seen.chunks[-1].after_ns - seen.chunks[0].after_ns) / 1e9
    measured = decode_tok_s(seen.written)
    assert measured is not None
    assert measured > 7 * (len(seen.chunks) - 1) / window_s


def test_a_reasoning_first_answer_is_timed_from_its_reasoning(tmp_path: Path) -> None:
    seen = _seen(tmp_path, "reasoning-first", "What is 17 + 25?", max_tokens=400)
    assert seen.chunks[0].kind == "reasoning"
    assert ttft_s(seen.written) == (seen.chunks[0].after_ns - seen.sent_ns) / 1e9
