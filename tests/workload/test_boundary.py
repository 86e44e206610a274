"""Single requests at the edges: their sizes and shapes, and that their histories are well formed."""

import json

import pytest

from redline.workload.boundary import (
    CODE_HEADINGS,
    ChatCase,
    agent_history,
    ide_shaped,
    long_reasoning,
    structured_code,
    tool_prefill,
)
from redline.workload.tools import tool_name

CASES = [tool_prefill("b"), ide_shaped("b"), agent_history("b"), structured_code("b"), long_reasoning("b")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_calls_name_offered_tools_with_arguments_they_take(case: ChatCase) -> None:
    schemas = {tool_name(tool): tool["function"]["parameters"] for tool in case.tools}
    pending: list[str] = []
    for message in case.messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == pending.pop(0)
            continue
        assert not pending
        for call in message.get("tool_calls", []):
            pending.append(call["id"])
            arguments, schema = json.loads(call["function"]["arguments"]), schemas[call["function"]["name"]]
            assert set(schema["required"]) <= set(arguments) <= set(schema["properties"])
    assert case.messages[-1]["role"] == "user"


@pytest.mark.parametrize(
    "build",
    [tool_prefill, ide_shaped, agent_history, structured_code, long_reasoning],
    ids=lambda build: build.__name__,
)
def test_a_seed_fixes_a_case_and_another_begins_otherwise(build: object) -> None:
    assert callable(build)
    assert build("x") == build("x")
    assert build("x").messages[0]["content"][:8] != build("y").messages[0]["content"][:8]


@pytest.mark.parametrize("characters", [2000, 100_000])
def test_a_tool_result_has_the_asked_size(characters: int) -> None:
    case = tool_prefill("b", characters)
    assert [message["role"] for message in case.messages] == ["system", "user", "assistant", "tool", "user"]
    assert characters - 80 < len(case.messages[3]["content"]) <= characters


def test_an_editors_request_has_ten_tools_and_five_thousand_characters_of_system() -> None:
    case = ide_shaped("b")
    assert len(case.tools) == 10
    assert case.tool_choice == "none"
    assert len(case.messages[0]["content"]) == pytest.approx(5000, abs=100)


def test_an_agents_history_holds_a_file_of_eighty_functions() -> None:
    case = agent_history("b")
    assert len(case.tools) == 4
    file = max((str(message["content"]) for message in case.messages if message["role"] == "tool"), key=len)
    starts = ("def ", "class ", "static ", "SELECT ", "export ", "[")
    assert sum(part.startswith(starts) for part in file.split("\n\n")) == 80


def test_the_headings_are_those_that_are_asked_for() -> None:
    assert ", ".join(CODE_HEADINGS) in structured_code("b").messages[0]["content"]
