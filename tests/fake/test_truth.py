"""The written truth against the wire: every token is accounted for, and a client's stamps come after ours."""

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from redline.fake.truth import Answered, Write, read_truth
from redline.probe.parse import read_exchange
from redline.probe.wire import exchange_bytes


def _exchange(url: str, text: str, **extra: Any) -> Any:
    body = {
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 90,
        "stream": True,
        "stream_options": {"include_usage": True},
        **extra,
    }
    capture = asyncio.run(exchange_bytes(f"{url}/v1/chat/completions", json.dumps(body).encode(), timeout_s=20))
    return read_exchange(capture)


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
@pytest.mark.parametrize("scenario", ["healthy", "multi-token-chunks", "reasoning-first"])
def test_tokens_and_stamps_agree_with_a_client(play: Any, tmp_path: Path, scenario: str, dialect: str) -> None:
    truth = tmp_path / "truth.jsonl"
    with play(scenario, "--dialect", dialect, "--truth", str(truth)) as talk:
        seen = _exchange(talk.fake.url, "Tell me a story about the sea.")
    assert seen.error is None
    events = read_truth(truth)
    answered = next(event for event in events if isinstance(event, Answered))
    chunks = [event for event in events if isinstance(event, Write) and event.tokens]
    assert sum(chunk.tokens for chunk in chunks) == answered.completion_tokens == seen.usage.completion_tokens
    assert answered.prompt_tokens == seen.usage.prompt_tokens
    assert len(chunks) == len(seen.chunks)
    for wrote, got in zip(chunks, seen.chunks, strict=True):
        assert (wrote.kind, wrote.characters) == (got.kind, got.characters)
        assert got.at_ns >= wrote.before_ns
    assert answered.first_token_ns == chunks[0].before_ns
    assert answered.last_token_ns == chunks[-1].after_ns
    assert seen.sent_ns <= answered.received_ns <= chunks[0].before_ns


def test_a_tool_call_is_counted_whole(play: Any, tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"properties": {"city": {}}}}}
    with play("healthy", "--truth", str(truth)) as talk:
        seen = _exchange(talk.fake.url, "What is the weather in Paris?", tools=[tool])
    assert seen.tool_calls[0].name == "get_weather"
    chunks = [event for event in read_truth(truth) if isinstance(event, Write) and event.tokens]
    assert {chunk.kind for chunk in chunks} == {"tool_call"}
    assert sum(chunk.tokens for chunk in chunks) == seen.usage.completion_tokens


def test_steps_take_the_time_that_was_set(play: Any, tmp_path: Path) -> None:
    """Lower bounds only: a busy machine can make steps longer, never shorter."""
    truth = tmp_path / "truth.jsonl"
    settings = ("--set", "speed.step_s=0.01", "--set", "speed.spread=0.0", "--set", "speed.overhead_s=0.05")
    with play("multi-token-chunks", "--truth", str(truth), "--set", "wire.stream_interval=1", *settings) as talk:
        talk.stream("Tell me a story.", max_tokens=20)
    events = read_truth(truth)
    answered = next(event for event in events if isinstance(event, Answered))
    assert answered.first_token_ns is not None
    assert answered.last_token_ns is not None
    assert answered.first_token_ns - answered.received_ns >= 0.05e9
    assert answered.last_token_ns - answered.first_token_ns >= 19 * 0.01e9 - 0.005e9


def _kill_once_written(process: Any, truth: Path) -> None:
    while truth.stat().st_size < 600:
        time.sleep(0.001)
    process.kill()


def test_lines_are_whole_after_a_kill(play: Any, tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    with play("healthy", "--truth", str(truth)) as talk:
        killer = threading.Thread(target=_kill_once_written, args=(talk.fake.process, truth))
        killer.start()
        talk.stream("Tell me a story.", max_tokens=5000)
        killer.join()
    events = read_truth(truth)
    assert len(events) > 3
    assert not any(isinstance(event, Answered) for event in events)
