"""Does Anthropic's messages API work, where the engine offers it?

Shapes: https://docs.anthropic.com/en/api/messages and /messages-streaming.
"""

import json
from itertools import pairwise
from typing import Any, Final

from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason

_PATH: Final = "/v1/messages"
_TOKENS: Final = 24
_ENDS: Final = ("end_turn", "max_tokens", "stop_sequence")


class Messages(BaseCheck):
    """`/v1/messages` answers, whole and streamed, in the shape of that API."""

    id, title, failure_class = "messages.shape", "messages API", "messages API broken"
    most_tokens = (120, 2 * _TOKENS)

    async def run(self, context: CheckContext) -> CheckResult:
        """Ask for a known fact twice, once streamed, and hold both answers against the API's form."""
        body: dict[str, Any] = {
            "model": context.client.target.model,
            "max_tokens": _TOKENS,
            "temperature": 0.0,
            "messages": [{"role": "user", "content": "What is the capital city of France?"}],
            "thinking": {"type": "disabled"},
        }
        whole = await context.client.post(_PATH, body, timeout_s=60 * context.patience)
        if whole.status in (404, 405, 501):
            return self.skip(SkipReason.NOT_OFFERED, f"this engine has no {_PATH}")
        if whole.status != 200:
            return self.result(CheckStatus.FAIL, f"status {whole.status}: {whole.text[:200]}")
        if wrong := _wrong_message(whole.data):
            return self.result(CheckStatus.FAIL, wrong, evidence=whole.text)
        streamed = await context.client.post(_PATH, {**body, "stream": True}, timeout_s=60 * context.patience)
        if streamed.status != 200:
            return self.result(CheckStatus.FAIL, f"streamed: status {streamed.status}: {streamed.text[:200]}")
        if wrong := _wrong_stream(streamed.text):
            return self.result(CheckStatus.FAIL, f"streamed: {wrong}", evidence=streamed.text[-400:])
        return self.result(CheckStatus.PASS, "whole and streamed answers are of the API's form")


def _wrong_message(data: Any) -> str | None:
    if not isinstance(data, dict) or data.get("type") != "message" or data.get("role") != "assistant":
        return "the answer is no message of an assistant"
    blocks = data.get("content")
    said = [_said(block) for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    if not "".join(said).strip():
        return "the message holds no text"
    if data.get("stop_reason") not in _ENDS:
        return f"stop_reason is {data.get('stop_reason')!r}"
    usage = data.get("usage") or {}
    if not all(isinstance(usage.get(name), int) and usage[name] > 0 for name in ("input_tokens", "output_tokens")):
        return "the message does not count its tokens"
    return None


def _said(block: dict[str, Any]) -> str:
    """Return the words of a block or a delta; a model that cannot be kept from thinking may say nothing else."""
    return f"{block.get('text') or ''}{block.get('thinking') or ''}"


def _wrong_stream(text: str) -> str | None:
    """Return what breaks the order of events: message, blocks that open and close, delta with the reason, end."""
    try:
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    except ValueError:
        return "an event that is no JSON"
    kinds = [str(event.get("type")) for event in events if event.get("type") != "ping"]
    if not kinds or kinds[0] != "message_start" or kinds[-1] != "message_stop":
        return f"it runs from {kinds[0] if kinds else 'nothing'} to {kinds[-1] if kinds else 'nothing'}"
    for before, after in pairwise(kinds):
        opened = before in ("content_block_start", "content_block_delta")
        if (after == "content_block_delta" and not opened) or (after == "content_block_start" and opened):
            return f"{after} follows {before}"
    said = "".join(_said(event.get("delta") or {}) for event in events)
    if not said.strip():
        return "no text in its deltas"
    reasons = [
        (event.get("delta") or {}).get("stop_reason") for event in events if event.get("type") == "message_delta"
    ]
    return None if any(reason in _ENDS for reason in reasons) else "no stop_reason"
