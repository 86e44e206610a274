"""Tokens as answers of every form state them."""

import json

import pytest

from redline.probe.exchange import Usage
from redline.probe.spending import Spending, usage_of_text

_CHAT = json.dumps({"usage": {"prompt_tokens": 7, "completion_tokens": 3}})
_MESSAGE = json.dumps(
    {"type": "message", "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3}}
)
_STREAM = "\n".join(
    f"data: {json.dumps(event)}"
    for event in (
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 0}}},
        {"type": "content_block_delta", "delta": {"text": "x"}},
        {"type": "message_delta", "usage": {"output_tokens": 3}},
    )
)


@pytest.mark.parametrize("text", [_CHAT, _MESSAGE, _STREAM, f"data: {_CHAT}\n\ndata: [DONE]"])
def test_every_form_is_read(text: str) -> None:
    assert usage_of_text(text) == Usage(prompt_tokens=7, completion_tokens=3)


@pytest.mark.parametrize(
    "text", ["", "<html>", "[]", "data: {broken", '{"usage": null}', '{"usage": {"prompt_tokens": true}}']
)
def test_what_states_nothing_is_none_and_counted_apart(text: str) -> None:
    spent = Spending()
    spent.add(usage_of_text(text))
    assert (spent.prompt_tokens, spent.completion_tokens, spent.requests, spent.uncounted) == (0, 0, 1, 1)
