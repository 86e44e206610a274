"""Soak and ramp sessions: sizes that fit the context, content that no other session has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.workload.conversations import Script
from redline.workload.sessions import CHARS_PER_TOKEN, RAMP_CHARACTERS, agentic_ramp, fresh_session, growing_session
from redline.workload.tools import all_tools

CONTEXTS = st.integers(6_000, 400_000)


def characters(script: Script) -> int:
    return sum(len(turn.tool_result or "") + len(turn.user or "") for turn in script.turns)


def replies(script: Script) -> int:
    return sum(turn.max_tokens for turn in script.turns)


@settings(max_examples=20, deadline=None)
@given(CONTEXTS)
def test_a_ramp_fits_its_context(context_tokens: int) -> None:
    script = agentic_ramp("r", context_tokens)
    assert len(script.turns) == 12
    assert script.tools == all_tools()
    assert characters(script) / CHARS_PER_TOKEN + replies(script) < context_tokens
    assert characters(script) <= RAMP_CHARACTERS + 2000
    assert all(turn.tool_choice == "required" for turn in script.turns)


def test_a_full_ramp_is_as_long_as_it_says_and_mixes_sizes() -> None:
    script = agentic_ramp("r", 131_072)
    sizes = [len(turn.tool_result or turn.user or "") for turn in script.turns]
    assert sum(sizes) == pytest.approx(RAMP_CHARACTERS, rel=0.01)
    assert max(sizes) > 20_000
    assert min(sizes) < 1500
    assert sizes != sorted(sizes)


@settings(max_examples=20, deadline=None)
@given(CONTEXTS, st.integers(0, 1000))
def test_a_growing_session_fits_its_context(context_tokens: int, index: int) -> None:
    script = growing_session("g", index, context_tokens)
    assert script.grows
    assert len(script.turns) == 5
    assert characters(script) / CHARS_PER_TOKEN + replies(script) < context_tokens
    assert script == growing_session("g", index, context_tokens)


def test_a_growing_session_has_results_of_the_asked_sizes() -> None:
    sizes = [len(turn.tool_result or "") for turn in growing_session("g", 0, 131_072).turns]
    assert sizes[0] == 0
    assert sizes[1:] == [pytest.approx(size, abs=80) for size in (20_000, 24_000, 24_000, 32_000)]


def test_sessions_share_nothing() -> None:
    results = [turn.tool_result for index in range(6) for turn in growing_session("g", index, 65_536).turns[1:]]
    results += [turn.tool_result for turn in agentic_ramp("g", 65_536).turns[1:]]
    lines = [line for text in results for line in (text or "").splitlines() if len(line) > 60]
    assert len(set(lines)) / len(lines) > 0.995


def test_five_shapes_stand_alone() -> None:
    script = fresh_session("f", 3, 8192)
    assert [turn.shape for turn in script.turns] == ["checklist", "tools", "tool_result", "code", "puzzle"]
    assert not script.grows
    assert [turn.thinking for turn in script.turns] == [False, False, False, False, True]
    roles = [message["role"] for message in script.start(2).asked(script.turns[2]).messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert script.start(2).asked(script.turns[2]).invented == 0


def test_a_calibrated_tokenizer_makes_room() -> None:
    assert characters(growing_session("c", 0, 16_384, 4.0)) > 1.5 * characters(growing_session("c", 0, 16_384, 2.4))


def test_a_context_too_small_says_how_much_is_needed() -> None:
    with pytest.raises(ValueError, match="this needs") as caught:
        growing_session("s", 0, 2048)
    needed = int(str(caught.value).rsplit(" ", 1)[1])
    growing_session("s", 0, needed + 1)
