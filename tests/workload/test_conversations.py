"""Scripts and transcripts: histories stay well formed whatever the model answers."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.workload.conversations import STUB_RESULT, Script, Transcript, Turn
from redline.workload.sessions import agentic_ramp, fresh_session, growing_session
from redline.workload.tools import all_tools, call_id, pick_tools, tool_name, usable_arguments

ANSWERS = st.tuples(
    st.sampled_from(["", "Done.", "Let me look."]),
    st.lists(
        st.tuples(
            st.sampled_from(["read_file", "run_tests", "no_such_tool", ""]),
            st.sampled_from(['{"path": "a.py"}', "{}", "", '{"path": "a', "[1]", "null", "garbage"]),
        ),
        max_size=3,
    ),
)


def require_well_formed(history: Transcript) -> None:
    """Every call has one result, right behind it and in order; arguments are JSON objects; ids are unique."""
    messages, seen = history.messages, set[str]()
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        assert message["role"] != "tool", "a result without a call"
        calls: list[dict[str, Any]] = message.get("tool_calls", [])
        for call in calls:
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert call["id"] not in seen
            assert len(call["id"]) == 9
            assert call["id"].isalnum()
            seen.add(call["id"])
            if index < len(messages):
                assert messages[index]["role"] == "tool"
                assert messages[index]["tool_call_id"] == call["id"]
                index += 1


@settings(max_examples=60, deadline=None)
@given(st.lists(ANSWERS, min_size=12, max_size=12), st.sampled_from(["ramp", "growing"]))
def test_any_answers_make_a_well_formed_history(answers: list[tuple[str, list[tuple[str, str]]]], kind: str) -> None:
    script = agentic_ramp("p", 16_384) if kind == "ramp" else growing_session("p", 0, 16_384)
    history = script.start()
    for turn, (content, calls) in zip(script.turns, answers, strict=False):
        before = len(history.messages)
        history = history.asked(turn)
        require_well_formed(history)
        assert len(history.messages) >= before
        history = history.answered(content, calls)
    require_well_formed(history)


def turn(user: str | None, result: str | None = None) -> Turn:
    return Turn(shape="t", user=user, tool_result=result, max_tokens=10, temperature=0.0)


def start(*, tools: bool = True) -> Transcript:
    script = Script(seed="s", system="help", tools=pick_tools("read_file") if tools else (), turns=(), grows=True)
    return script.start()


def test_a_result_answers_the_models_own_call() -> None:
    history = start().asked(turn("look")).answered("ok", [("read_file", '{"path": "x"}'), ("read_file", "{}")])
    history = history.asked(turn(None, "contents"))
    assert [message["content"] for message in history.messages[-2:]] == ["contents", STUB_RESULT]
    assert (history.invented, history.repaired) == (0, 0)


def test_a_missing_call_is_invented_and_counted() -> None:
    history = start().asked(turn("look")).answered("I would rather talk.").asked(turn(None, "contents"))
    assert history.invented == 1
    assert history.messages[-2]["content"] == "I would rather talk."
    assert history.messages[-2]["tool_calls"][0]["function"]["name"] == "read_file"
    assert history.messages[-1] == {"role": "tool", "tool_call_id": call_id(0), "content": "contents"}


def test_a_garbled_call_is_repaired_and_counted() -> None:
    history = start().asked(turn("look")).answered("", [("read_file", '{"path": "a'), ("delete_all", "{}")])
    assert history.repaired == 2
    calls = [call["function"] for call in history.messages[-1]["tool_calls"]]
    assert calls == [{"name": "read_file", "arguments": "{}"}] * 2


def test_a_transcript_does_not_change() -> None:
    first = start()
    second = first.asked(turn("look"))
    third = second.answered("seen")
    assert [len(history.messages) for history in (first, second, third)] == [1, 2, 3]


def test_a_model_without_tools_gets_the_same_content_from_the_user() -> None:
    script = growing_session("s", 0, 32_768)
    plain = script.without_tools()
    assert plain.tools == ()
    history = plain.start()
    for with_tools, without in zip(script.turns, plain.turns, strict=True):
        history = history.asked(without).answered("yes")
        assert with_tools.tool_result is None or with_tools.tool_result in str(without.user)
    assert {message["role"] for message in history.messages} == {"system", "user", "assistant"}
    assert all(turn.user for turn in fresh_session("s", 0, 8192).without_tools().turns)
    assert all(turn.user for turn in agentic_ramp("s", 8192).without_tools().turns)


def test_every_start_is_salted_anew() -> None:
    script = fresh_session("s", 0, 8192)
    heads = {script.start(number).messages[0]["content"][:8] for number in range(5)}
    heads |= {fresh_session("s", number, 8192).start().messages[0]["content"][:8] for number in range(1, 6)}
    assert len(heads) == 10


def test_ten_tools_have_schemas_that_say_what_they_need() -> None:
    assert len({tool_name(tool) for tool in all_tools()}) == 10
    for tool in all_tools():
        parameters = tool["function"]["parameters"]
        assert parameters["type"] == "object"
        assert set(parameters.get("required", [])) <= set(parameters["properties"])
        assert len(tool["function"]["description"]) > 20
    assert json.loads(json.dumps(list(all_tools()))) == list(all_tools())


@pytest.mark.parametrize(
    ("name", "arguments", "usable"),
    [
        ("read_file", '{"path":"x"}', '{"path": "x"}'),
        ("read_file", "", "{}"),
        ("read_file", "[]", None),
        ("read_file", "{", None),
        ("other", "{}", None),
    ],
)
def test_which_arguments_a_history_may_repeat(name: str, arguments: str, usable: str | None) -> None:
    assert usable_arguments(pick_tools("read_file"), name, arguments) == usable
