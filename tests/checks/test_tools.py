"""What counts as a call, and when a share is decided."""

import pytest

from redline.checks.tools import Trial, judge_trial, wrong_call
from redline.probe.exchange import Exchange, ToolCall


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_weather", "{"),
        ("get_weather", '["Oslo"]'),
        ("get_weather", "{}"),
        ("get_weather", '{"city": "Rome"}'),
        ("get_weather", '{"city": "Oslo", "unit": "kelvin"}'),
        ("get_weather", '{"city": "Oslo", "days": 3}'),
        ("search", '{"city": "Oslo"}'),
    ],
)
def test_a_wrong_call_is_named(name: str, arguments: str) -> None:
    assert wrong_call(name, arguments, "Oslo")


def test_a_right_call_passes() -> None:
    assert wrong_call("get_weather", '{"city": "Oslo, Norway", "unit": "celsius"}', "Oslo") is None


def _answer(content: str, finish: str, *calls: ToolCall) -> Exchange:
    return Exchange(sent_ns=0, end_ns=1, content=content, reasoning="hm", finish_reason=finish, tool_calls=calls)


def test_trials_tell_a_lost_call_from_a_budget_that_ended() -> None:
    call = ToolCall(name="get_weather", arguments='{"city": "Oslo"}')
    assert judge_trial(_answer("", "tool_calls", call), "Oslo")[0] is Trial.CALLED
    assert judge_trial(_answer("", "stop"), "Oslo")[0] is Trial.DROPPED
    assert judge_trial(_answer("", "length"), "Oslo")[0] is Trial.UNDECIDED
    assert judge_trial(_answer("", "stop", call), "Oslo")[0] is Trial.WRONG
    assert judge_trial(_answer("<tool_call>", "tool_calls", call), "Oslo")[0] is Trial.WRONG
