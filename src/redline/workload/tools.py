"""Ten made-up tools of a coding assistant, and calls of them that a history can hold. Knows no parser and no server."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

Tool = Mapping[str, Any]

_DATA: Final = Path(__file__).parent / "data" / "tools.yaml"


@lru_cache(maxsize=1)
def all_tools() -> tuple[Tool, ...]:
    """Return the ten tools, in the form of the field `tools` of a chat request."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: list[dict[str, Any]] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return tuple({"type": "function", "function": function} for function in found)


def pick_tools(*names: str) -> tuple[Tool, ...]:
    """Return the tools of these names.

    Raises:
        KeyError: no such tool.
    """
    by_name = {tool_name(tool): tool for tool in all_tools()}
    return tuple(by_name[name] for name in names)


def tool_name(tool: Tool) -> str:
    """Return a tool's name."""
    return str(tool["function"]["name"])


def call_id(number: int) -> str:
    """Return an id of nine letters and digits: Mistral's chat template takes no other (Mistral-7B-Instruct-v0.3)."""
    return f"call{number:05d}"


def call_message(calls: Sequence[tuple[str, str, str]], content: str = "") -> dict[str, Any]:
    """Return an assistant's message that calls tools, each given as id, name and arguments in JSON."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, name, arguments in calls
        ],
    }


def result_message(number: str, text: str) -> dict[str, Any]:
    """Return a tool's answer to the call of this id."""
    return {"role": "tool", "tool_call_id": number, "content": text}


def usable_arguments(tools: Sequence[Tool], name: str, arguments: str) -> str | None:
    """Return arguments that a history may repeat: a JSON object for a tool that was offered; None otherwise.

    A call replayed as the model garbled it is answered by some templates with an error of the server, which would then
    be blamed for it (club-3090#665).
    """
    if name not in {tool_name(tool) for tool in tools}:
        return None
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return None
    return json.dumps(value) if isinstance(value, dict) else None
