"""A value for a JSON schema, with words of the question where they fit. Knows schemas, not engines."""

import re
from typing import Any

_CAPITALISED = re.compile(r"(?<!^)(?<![.?!] )\b[A-Z][a-z]+(?: [A-Z][a-z]+)*")
_PATH = re.compile(r"[\w.-]*/[\w./-]+|\b[\w-]+\.(?:py|txt|md|json|yaml|csv|log|c|js|ts)\b")
_QUOTED = re.compile(r"[\"'`“]([^\"'`”\n]{1,60})[\"'`”]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def instance(schema: dict[str, Any], question: str, name: str = "") -> Any:
    """Return a value that the schema allows; enums, numbers, places and paths are taken from the question if it can.

    References (`$ref`) are not followed: a value of theirs is an empty object.
    """
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        lower = question.lower()
        return next((item for item in schema["enum"] if str(item).lower() in lower), schema["enum"][0])
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return instance(schema[key][0], question, name)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    match kind:
        case "object":
            properties: dict[str, Any] = schema.get("properties") or {}
            wanted = schema.get("required") or list(properties)
            return {key: instance(properties.get(key, {}), question, key) for key in wanted}
        case "array":
            item = instance(schema.get("items") or {}, question, name)
            return [item] * max(1, int(schema.get("minItems", 1)))
        case "integer" | "number":
            return _number(schema, question, whole=kind == "integer")
        case "boolean":
            return True
        case "null":
            return None
    return _string(schema, question, name)


def _number(schema: dict[str, Any], question: str, *, whole: bool) -> float:
    found = [float(text) for text in _NUMBER.findall(question)]
    low, high = schema.get("minimum"), schema.get("maximum")
    fitting = [n for n in found if (low is None or n >= low) and (high is None or n <= high)]
    value = fitting[0] if fitting else float(low if low is not None else 4 if high is None or high >= 4 else high)
    return int(value) if whole else value


def _string(schema: dict[str, Any], question: str, name: str) -> str:
    lower = name.lower()
    patterns = [_QUOTED, _CAPITALISED]
    if any(word in lower for word in ("path", "file", "dir")):
        patterns = [_PATH, _QUOTED]
    elif any(word in lower for word in ("city", "location", "place", "country", "name")):
        patterns = [_CAPITALISED, _QUOTED]
    text = name or "text"
    for pattern in patterns:
        if match := pattern.search(question):
            text = match.group(match.lastindex or 0)
            break
    shortest, longest = int(schema.get("minLength", 0)), int(schema.get("maxLength", 200))
    return text.ljust(shortest, "x")[:longest]
