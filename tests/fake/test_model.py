"""What the tiny model answers to the questions that checks ask."""

import base64
import json
import random
import struct
import zlib
from typing import Any

import pytest

from redline.fake import image
from redline.fake.model import Reply, reply
from redline.fake.prompt import BadRequestError, anthropic_prompt, chat_prompt
from redline.fake.scenario import Answer, Model

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
        },
    },
}


def _ask(text: Any, answer: Answer | None = None, model: Model | None = None, **extra: Any) -> Reply:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 500, **extra}
    return reply(chat_prompt(body), model or Model(), answer or Answer(), 0)


def _png(pixels: tuple[int, int, int], size: int = 16, text: str | None = None) -> str:
    def block(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + bytes(pixels) * size for _ in range(size))
    data = b"\x89PNG\r\n\x1a\n" + block(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0))
    if text:
        data += block(b"tEXt", b"Description\0" + text.encode())
    data += block(b"IDAT", zlib.compress(rows)) + block(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _picture(url: str) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What do you see?"}]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital city of France? Answer with the name of the city.", "Paris"),
        ("What is 17 + 25?", "42"),
        ("What is 6 x 7?", "42"),
        ("Say OK.", "OK"),
        ("Count from 1 to 80, separated by spaces.", "79 80"),
    ],
)
def test_known_questions(question: str, answer: str) -> None:
    assert answer in _ask(question).content


def test_a_date_is_no_sum() -> None:
    assert "=" not in _ask("Write a note about 2026-11-29 and the file a/b.").content


def test_open_questions_get_long_text_without_repetition() -> None:
    text = _ask("Write an essay about rain.").content
    words = text.split()[:200]
    assert len(text.split()) > 300
    assert len(set(words)) / len(words) > 0.3
    assert _ask("Write an essay about rain.").content == text
    assert _ask("Write an essay about rain.", seed=5).content != text


def test_needles_are_found_by_their_names_and_lost_beyond_their_reach() -> None:
    draw = random.Random(3)
    filler = [f"The {draw.choice(['tide', 'mill', 'road'])} number {n} was quiet that evening." for n in range(800)]
    for at, name, code in ((80, "amber", "K7QX-41"), (400, "cobalt", "ZP90-77"), (720, "violet", "MM31-08")):
        filler[at] = f"The access code for {name} is {code}."
    haystack = " ".join(filler)
    question = f"{haystack}\n\nWhat are the access codes for amber and violet? Answer with the codes."
    content = _ask(question).content
    assert "K7QX-41" in content
    assert "MM31-08" in content
    assert "ZP90-77" not in content
    lost = _ask(question, Answer(recall_tokens=2000)).content
    assert "K7QX-41" not in lost
    assert "MM31-08" in lost


def test_codes_are_found_without_the_word_code() -> None:
    filler = "The tide was quiet that evening. " * 100
    text = f"The amber vault opens with QXR7K2. {filler} The violet gate opens with ZZPLMW. {filler}"
    content = _ask(f"{text}\n\nWhat opens the amber vault?").content
    assert "QXR7K2" in content
    assert "ZZPLMW" not in content
    assert "QXR7K2" not in _ask(f"{text}\n\nWhat is a good name for a boat?").content


def test_a_phrase_without_digits_is_found() -> None:
    text = "Rain fell. " * 200 + "The secret phrase is crimson otter. " + "Rain fell. " * 200
    assert "crimson otter" in _ask(f"{text}\n\nWhat is the secret phrase?").content


def test_a_tool_that_fits_is_called_with_arguments_of_its_schema() -> None:
    found = _ask("What is the weather in Paris, in celsius? Use the tool.", tools=[_WEATHER])
    assert json.loads(found.calls[0].arguments) == {"city": "Paris", "unit": "celsius"}
    assert found.content == ""


def test_a_tool_that_does_not_fit_is_not_called() -> None:
    assert not _ask("What is 2 + 2?", tools=[_WEATHER]).calls
    assert not _ask("What is the weather in Paris?", tools=[_WEATHER], tool_choice="none").calls
    assert _ask("Hello.", tools=[_WEATHER], tool_choice="required").calls
    assert not _ask("What is the weather in Paris?", tools=[_WEATHER], model=Model(tools=False)).calls


def test_a_tool_result_is_answered_with_text() -> None:
    messages = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "get_weather"}}]},
        {"role": "tool", "content": "18 degrees and rain"},
    ]
    found = reply(chat_prompt({"messages": messages, "tools": [_WEATHER]}), Model(), Answer(), 0)
    assert "18 degrees" in found.content
    assert not found.calls


def test_a_schema_is_obeyed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "animal": {"type": "string", "enum": ["cat", "dog"]},
            "legs": {"type": "integer", "minimum": 0, "maximum": 10},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        },
        "required": ["animal", "legs", "tags"],
    }
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    value = json.loads(_ask("Describe a dog.", response_format=form).content)
    assert value["animal"] == "dog"
    assert 0 <= value["legs"] <= 10
    assert len(value["tags"]) == 2
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(_ask("Describe a dog.", Answer(json="prose"), response_format=form).content)


def test_thinking_follows_the_request_unless_it_cannot() -> None:
    on: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}}
    off: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}}
    assert _ask("2 + 2", **on).reasoning
    assert not _ask("2 + 2", **off).reasoning
    assert not _ask("2 + 2").reasoning
    assert _ask("2 + 2", model=Model(thinking="always"), **off).reasoning
    assert not _ask("2 + 2", model=Model(thinking="none"), **on).reasoning
    assert not _ask("2 + 2", reasoning_effort="none", model=Model(thinks_unasked=True)).reasoning


def test_pictures_are_seen_by_their_facts_or_their_colours() -> None:
    assert "red" in _ask(_picture(_png((224, 16, 16)))).content
    facts = "red circle; blue square; number 47"
    assert facts in _ask(_picture(_png((255, 255, 255), text=facts))).content
    assert "red" not in _ask(_picture(_png((224, 16, 16))), Answer(images="unseen")).content
    assert image.describe("data:image/png;base64,AAAA") is None
    assert image.describe("data:image/png;base64,!!") is None


def test_faults_of_the_answer() -> None:
    on: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}, "tools": [_WEATHER]}
    question = "What is the weather in Paris? Use the tool."
    dropped = _ask(question, Answer(tool_calls="lost_after_reasoning"), **on)
    assert (dropped.calls, dropped.content) == ((), "")
    assert "get_weather" in dropped.reasoning
    assert _ask(question, Answer(tool_calls="lost_after_reasoning"), tools=[_WEATHER]).calls
    assert "<tool_call>" in _ask(question, Answer(tool_calls="text"), tools=[_WEATHER]).content
    assert set(_ask("Hello", Answer(text="repeats")).content) == {"!", "\n"}


def test_anthropic_bodies_mean_the_same() -> None:
    found = anthropic_prompt(
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "What is 1 + 1?"}]}],
            "max_tokens": 5,
            "tools": [{"name": "add", "input_schema": {"type": "object"}}],
            "thinking": {"type": "enabled", "budget_tokens": 100},
        }
    )
    assert (found.question, found.max_tokens, found.thinking) == ("What is 1 + 1?", 5, True)
    assert found.tools[0]["name"] == "add"


@pytest.mark.parametrize(
    "body", [{}, {"messages": []}, {"messages": "hi"}, {"messages": [{"content": [{"type": "x"}]}]}]
)
def test_bodies_that_no_engine_takes(body: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        chat_prompt(body)
