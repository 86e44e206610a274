"""A request in one form: what was asked, offered and shown, whichever of the engine's doors it came through."""

import json
from dataclasses import dataclass
from typing import Any


class BadRequestError(ValueError):
    """A body that no engine accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request, read. `text` is the whole prompt as the template writes it; `question` the user's last words."""

    text: str
    question: str
    max_tokens: int
    messages: tuple[dict[str, Any], ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: Any = "auto"
    schema: dict[str, Any] | None = None
    images: tuple[str, ...] = ()
    thinking: bool | None = None  # None: the request did not say
    ignore_eos: bool = False
    seed: int | None = None
    after_tool: bool = False


def chat_prompt(body: dict[str, Any]) -> Prompt:
    """Read an OpenAI chat body.

    Raises:
        BadRequestError: no messages, or not in the shape of messages.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        raise BadRequestError("messages: a list of at least one message is required")
    texts, images = zip(*(_flatten(message.get("content")) for message in messages), strict=True)
    tools = tuple(item.get("function", item) for item in body.get("tools") or ())
    parts = [json.dumps(tool) for tool in tools]
    for message, text in zip(messages, texts, strict=True):
        calls = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
        parts.append(f"<|im_start|>{message.get('role', 'user')}\n{text}{calls}<|im_end|>")
    asked = [text for message, text in zip(messages, texts, strict=True) if message.get("role") == "user"]
    return Prompt(
        text="\n".join([*parts, "<|im_start|>assistant\n"]),
        question=asked[-1] if asked else texts[-1],
        max_tokens=_limit(body),
        messages=tuple(messages),
        tools=tools,
        tool_choice=body.get("tool_choice", "auto"),
        schema=_schema(body),
        images=tuple(image for shown in images for image in shown),
        thinking=_thinking(body),
        ignore_eos=bool(body.get("ignore_eos")),
        seed=body.get("seed"),
        after_tool=messages[-1].get("role") == "tool",
    )


def text_prompt(body: dict[str, Any]) -> Prompt:
    """Read a completion body.

    Raises:
        BadRequestError: no prompt.
    """
    text = body.get("prompt")
    if isinstance(text, list) and text and isinstance(text[0], str):
        text = text[0]
    if not isinstance(text, str):
        raise BadRequestError("prompt: a text is required")
    return Prompt(
        text=text,
        question=text,
        max_tokens=_limit(body, default=16),
        ignore_eos=bool(body.get("ignore_eos")),
        seed=body.get("seed"),
        schema=_schema(body),
    )


def anthropic_prompt(body: dict[str, Any]) -> Prompt:
    """Read an Anthropic messages body, by way of the OpenAI form.

    Raises:
        BadRequestError: not in the shape of messages.
    """
    messages: list[dict[str, Any]] = []
    if body.get("system"):
        messages.append({"role": "system", "content": _flatten(body["system"])[0]})
    for message in body.get("messages") or []:
        blocks = message.get("content")
        results = [b for b in blocks if b.get("type") == "tool_result"] if isinstance(blocks, list) else []
        messages.append({"role": "tool" if results else message.get("role", "user"), "content": blocks})
    tools = [
        {"name": tool.get("name"), "description": tool.get("description", ""), "parameters": tool.get("input_schema")}
        for tool in body.get("tools") or ()
    ]
    choice = {"any": "required", "none": "none"}.get((body.get("tool_choice") or {}).get("type", ""), "auto")
    thinking = (body.get("thinking") or {}).get("type")
    kwargs = {} if thinking is None else {"enable_thinking": thinking == "enabled"}
    return chat_prompt(
        {
            "messages": messages,
            "tools": tools,
            "tool_choice": choice,
            "max_tokens": body.get("max_tokens"),
            "chat_template_kwargs": kwargs,
        }
    )


def _limit(body: dict[str, Any], default: int = 1 << 30) -> int:
    for name in ("max_completion_tokens", "max_tokens", "n_predict"):
        value = body.get(name)
        if isinstance(value, int) and value >= 0:
            return value
    return default


def _flatten(content: Any) -> tuple[str, tuple[str, ...]]:
    """Return the text and the image URLs of a message's content, a string or a list of parts."""
    if not isinstance(content, list):
        return str(content or ""), ()
    texts, images = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            texts.append(str(part.get("text", "")))
        elif kind == "image_url":
            images.append(
                str(part["image_url"].get("url") if isinstance(part["image_url"], dict) else part["image_url"])
            )
        elif kind == "image":
            images.append(f"data:;base64,{part.get('source', {}).get('data', '')}")
        elif kind == "tool_result":
            texts.append(_flatten(part.get("content"))[0])
        elif kind not in ("tool_use", "thinking"):
            raise BadRequestError(f"content part of an unknown type: {kind!r}")
    return "\n".join(texts), tuple(images)


def _schema(body: dict[str, Any]) -> dict[str, Any] | None:
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        schema = (form.get("json_schema") or {}).get("schema") or form.get("schema")
        return schema if isinstance(schema, dict) else {}
    if form.get("type") == "json_object":
        return form.get("schema") or {"type": "object", "properties": {"answer": {"type": "string"}}}
    return None


def _thinking(body: dict[str, Any]) -> bool | None:
    kwargs = body.get("chat_template_kwargs") or {}
    if "enable_thinking" in kwargs:
        return bool(kwargs["enable_thinking"])
    effort = kwargs.get("reasoning_effort") or body.get("reasoning_effort")
    return None if effort is None else effort != "none"
