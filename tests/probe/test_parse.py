"""Truth tests: bytes and stamps are chosen here, so every derived number is known exactly."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.probe.definitions import decode_tok_s, prefill_tok_s, ttfa_s, ttft_s, wall_tok_s
from redline.probe.exchange import ErrorKind, Exchange, ExchangeError
from redline.probe.parse import read_exchange
from redline.probe.wire import Capture, Segment

MS = 1_000_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event(model="m", choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def usage(completion: int, prompt: int = 10, cached: int | None = 0) -> bytes:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": completion, **details})


def capture(*timed: tuple[int, bytes], error: ExchangeError | None = None) -> Capture:
    """Build a capture from (milliseconds after sending, bytes)."""
    segments = tuple(Segment(at_ms * MS, data) for at_ms, data in timed)
    end = timed[-1][0] if timed else 1
    return Capture(sent_ns=0, end_ns=(end + 1) * MS, segments=segments, error=error)


def stream(*timed: tuple[int, bytes]) -> Capture:
    return capture((1, HEAD), *((at, chunk(data)) for at, data in timed), (timed[-1][0], b"0\r\n\r\n"))


def test_every_rate_follows_from_the_stamps() -> None:
    pieces = [(200 + 10 * i, delta(content="x")) for i in range(50)]
    exchange = read_exchange(
        stream((50, delta(role="assistant", content=None)), *pieces, (700, delta("stop")), (701, usage(100, 1000)))
    )
    assert exchange.error is None
    assert ttft_s(exchange) == 0.2
    assert ttfa_s(exchange) == 0.2
    assert exchange.last_token_ns == 690 * MS
    # 100 tokens by the server's count, one of them in the first of 50 chunks, over 490 ms.
    assert decode_tok_s(exchange) == pytest.approx(99 / 0.49)
    assert prefill_tok_s(exchange) == pytest.approx(1000 / 0.2)
    assert wall_tok_s(exchange) == pytest.approx(100 / 0.702)
    assert exchange.finish_reason == "stop"
    assert exchange.content == "x" * 50


def test_reasoning_counts_as_the_first_token_and_not_as_the_answer() -> None:
    for field in ("reasoning", "reasoning_content"):
        exchange = read_exchange(
            stream((100, delta(**{field: "hm"})), (900, delta(content="4")), (901, delta("stop")), (902, usage(20)))
        )
        assert ttft_s(exchange) == 0.1
        assert ttfa_s(exchange) == 0.9
        assert (exchange.reasoning, exchange.content) == ("hm", "4")


def test_tool_calls_are_put_together_and_start_the_clock() -> None:
    first = {"index": 0, "function": {"name": "get_weather", "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": part}} for part in ('{"city": ', '"Paris"}')]
    exchange = read_exchange(
        stream(
            (70, delta(tool_calls=[first])),
            *[(80 + i, delta(tool_calls=[part])) for i, part in enumerate(rest)],
            (90, delta("tool_calls")),
        )
    )
    [call] = exchange.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    assert ttft_s(exchange) == 0.07
    assert ttfa_s(exchange) is None


def test_what_the_server_does_not_say_is_none_and_gives_no_rate() -> None:
    exchange = read_exchange(stream((10, delta(content="a")), (20, delta(content="b")), (21, delta("stop"))))
    assert exchange.usage.completion_tokens is None
    assert decode_tok_s(exchange) is None
    assert wall_tok_s(exchange) is None
    silent_cache = read_exchange(stream((10, delta(content="a")), (21, delta("stop")), (22, usage(50, 10, None))))
    assert silent_cache.usage.cached_tokens is None
    assert prefill_tok_s(silent_cache) is None


def test_cached_prompt_tokens_are_no_prefill() -> None:
    exchange = read_exchange(stream((100, delta(content="a")), (101, delta("stop")), (102, usage(20, 1000, 900))))
    assert prefill_tok_s(exchange) == pytest.approx(100 / 0.1)


def test_all_tokens_at_once_have_no_decode_rate() -> None:
    exchange = read_exchange(stream((100, delta(content="everything")), (100, delta("stop")), (100, usage(200))))
    assert decode_tok_s(exchange) is None


@pytest.mark.parametrize(
    ("made", "kind", "words"),
    [
        (capture(error=ExchangeError(kind=ErrorKind.CONNECT, message="refused")), ErrorKind.CONNECT, "refused"),
        (capture(), ErrorKind.TRUNCATED, "without a word"),
        (capture((1, b"SSH-2.0-OpenSSH\r\n")), ErrorKind.PROTOCOL, "not an HTTP"),
        (
            capture((1, b'HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\n\r\n{"error":{"message":"Loading"}}')),
            ErrorKind.STATUS,
            "Loading",
        ),
        (
            capture((1, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>login</html>")),
            ErrorKind.PROTOCOL,
            "text/html",
        ),
        (
            capture((1, b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"error": "out of memory"}')),
            ErrorKind.SERVER,
            "out of memory",
        ),
        (stream((5, event(error={"message": "boom", "code": 500}))), ErrorKind.SERVER, "boom"),
        (stream((5, delta(content="a"))), ErrorKind.TRUNCATED, "finish reason"),
        (capture((1, HEAD), (2, chunk(delta("stop")))), ErrorKind.TRUNCATED, "inside the stream"),
        (stream((5, b"data: {not json}\n\n")), ErrorKind.PROTOCOL, "unreadable"),
        (stream((5, b": keep-alive\n\n")), ErrorKind.PROTOCOL, "without one event"),
        (capture((1, HEAD), (2, b"zz\r\nhello\r\n")), ErrorKind.PROTOCOL, "chunk size"),
    ],
)
def test_every_way_to_go_wrong_has_its_kind(made: Capture, kind: ErrorKind, words: str) -> None:
    exchange = read_exchange(made)
    assert exchange.error is not None
    assert exchange.error.kind is kind
    assert words in exchange.error.message
    assert decode_tok_s(exchange) is None


@given(st.data())
def test_the_way_bytes_are_cut_changes_no_word_and_no_later_stamp(data: st.DataObject) -> None:
    """The same response, cut at any byte and delivered later and later: same text, and no event before its bytes."""
    raw = HEAD + b"".join(chunk(delta(content=word)) for word in ("The", " sky", " is", " blue"))
    raw += chunk(delta("stop")) + chunk(usage(40)) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1), max_size=30)))
    edges = [0, *cuts, len(raw)]
    parts = [raw[a:b] for a, b in pairwise(edges)]
    exchange = read_exchange(capture(*((i + 1, part) for i, part in enumerate(parts))))
    assert exchange.error is None
    assert exchange.content == "The sky is blue"
    for number, piece in enumerate(exchange.chunks):
        end = raw.index(b"\n\n", raw.index((b"The", b" sky", b" is", b" blue")[number])) + 2
        expected = next(i + 1 for i, edge in enumerate(edges[1:]) if edge >= end)
        assert piece.at_ns == expected * MS


@given(st.binary(max_size=400))
def test_no_bytes_make_the_reader_fall_over(junk: bytes) -> None:
    for made in (capture((1, junk)), capture((1, HEAD), (2, junk)), capture((1, HEAD), (2, chunk(b"data: " + junk)))):
        assert isinstance(read_exchange(made), Exchange)
