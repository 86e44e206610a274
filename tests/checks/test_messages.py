"""What breaks the form of the messages API."""

import json
from typing import Any

from redline.checks.messages import _wrong_message, _wrong_stream

GOOD: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Paris"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start"},
    {"type": "content_block_start"},
    {"type": "content_block_delta", "delta": {"text": "Paris"}},
    {"type": "content_block_stop"},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
]


def _text(events: list[dict[str, Any]]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def test_a_good_message_and_stream_pass() -> None:
    assert _wrong_message(GOOD) is None
    assert _wrong_stream(_text(EVENTS)) is None


def test_every_missing_part_of_a_message_is_named() -> None:
    for name in GOOD:
        assert _wrong_message({key: value for key, value in GOOD.items() if key != name}), name
    assert _wrong_message({**GOOD, "content": [{"type": "text", "text": " "}]})
    assert _wrong_message(None)


def test_every_missing_event_but_a_block_end_is_named() -> None:
    for index, event in enumerate(EVENTS):
        wrong = _wrong_stream(_text(EVENTS[:index] + EVENTS[index + 1 :]))
        assert wrong or event["type"] == "content_block_stop", event["type"]
    assert _wrong_stream("<html>")
