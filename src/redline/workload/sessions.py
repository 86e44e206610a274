"""The sessions of soak and ramp: which turns there are, what their tools return, and how large it all gets.

Sizes follow the context of the server. Everything that is returned by a tool is generated for this session alone.
Knows no server; `conversations` says what a script is.
"""

import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.workload.conversations import Script, Turn
from redline.workload.corpus import Corpus, Genre
from redline.workload.tools import Tool, all_tools, pick_tools

_DATA: Final = Path(__file__).parent / "data" / "conversations.yaml"
# Code, logs and hexadecimal digits take more tokens than prose. On the safe side; a server's tokenizer knows better.
CHARS_PER_TOKEN: Final = 2.4
# Tools, system and templates of a session, in tokens, generously.
_OVERHEAD_TOKENS: Final = 1800
_SHARE_OF_CONTEXT: Final = 0.9
# Results of tools in a growing session, in characters, before scaling: two files, a search, a test log.
_SOAK_RESULTS: Final = (
    (Genre.LISTING, 20_000),
    (Genre.LISTING, 24_000),
    (Genre.SEARCH, 24_000),
    (Genre.TEST_LOG, 32_000),
)
_SOAK_TOKENS: Final = (350, 350, 400, 500, 1500)
# Relative sizes of a ramp's results: small and large ones mixed, as an agent meets them.
_RAMP_SIZES: Final = (0.4, 5.2, 1.1, 8.3, 14.0, 2.6, 17.5, 0.9, 24.0, 6.5, 12.5, 7.0)
_RAMP_GENRES: Final = (Genre.SEARCH, Genre.LISTING, Genre.TEST_LOG, Genre.LISTING)
RAMP_CHARACTERS: Final = 116_000
# A call that is cut off is no JSON; 150 tokens cut many (club-3090#665). Small contexts get what they can hold.
_RAMP_REPLY_TOKENS: Final = 600


@lru_cache(maxsize=1)
def sayings() -> dict[str, Any]:
    """Return what is said, by occasion: `data/conversations.yaml`."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return loaded


def say(occasion: str, seed: str) -> str:
    """Return one saying of an occasion, chosen by the seed."""
    return str(random.Random(f"say/{occasion}/{seed}").choice(sayings()[occasion]))


def fresh_session(seed: str, index: int, context_tokens: int, chars_per_token: float = CHARS_PER_TOKEN) -> Script:
    """Return five turns of different shapes, each a conversation of its own.

    Raises:
        ValueError: the context is too small to hold tools, a reply and any content.
    """
    name = f"{seed}/fresh/{index}"
    room = _room(context_tokens, 2000, chars_per_token)
    turns = (
        Turn(shape="checklist", user=say("checklist", name), tool_choice="none", max_tokens=220, temperature=0.3),
        Turn(shape="tools", user=say("tool_question", name), max_tokens=320, temperature=0.2),
        Turn(
            shape="tool_result",
            opening=say("tool_question", f"{name}/result"),
            tool_result=Corpus(name, (Genre.LISTING,)).characters(min(12_000, room)),
            user=say("tool_summary", name),
            max_tokens=700,
            temperature=0.35,
        ),
        Turn(shape="code", user=say("write_code", name), tool_choice="none", max_tokens=900, temperature=0.45),
        Turn(
            shape="puzzle",
            user=say("puzzle", name),
            tool_choice="none",
            max_tokens=2000,
            temperature=0.2,
            thinking=True,
        ),
    )
    return Script(seed=name, system=str(sayings()["system"]), tools=_agent_tools(), turns=turns, grows=False)


def growing_session(seed: str, index: int, context_tokens: int, chars_per_token: float = CHARS_PER_TOKEN) -> Script:
    """Return five turns of one conversation that takes in 100,000 characters, or what a smaller context can hold.

    Raises:
        ValueError: the context is too small to hold tools, replies and any content.
    """
    name = f"{seed}/growing/{index}"
    room = _room(context_tokens, sum(_SOAK_TOKENS), chars_per_token)
    scale = min(1.0, room / sum(size for _, size in _SOAK_RESULTS))
    results = (
        None,
        *(
            Corpus(f"{name}/{number}", (genre,)).characters(round(size * scale))
            for number, (genre, size) in enumerate(_SOAK_RESULTS)
        ),
    )
    turns = tuple(
        Turn(
            shape=f"turn-{number}",
            user=say("follow_up" if result else "tool_question", f"{name}/{number}"),
            tool_result=result,
            max_tokens=max_tokens,
            temperature=0.3,
        )
        for number, (result, max_tokens) in enumerate(zip(results, _SOAK_TOKENS, strict=True), start=1)
    )
    return Script(seed=name, system=str(sayings()["system"]), tools=_agent_tools(), turns=turns, grows=True)


def agentic_ramp(
    seed: str,
    context_tokens: int,
    *,
    chars_per_token: float = CHARS_PER_TOKEN,
    reply_tokens: int | None = None,
    most_characters: int = RAMP_CHARACTERS,
) -> Script:
    """Return twelve turns of an agent at work: a task with an open file, then eleven results, small and large mixed.

    They add up to `most_characters`, or to what fits nine tenths of the context beside the replies. A reply has 600
    tokens, or a 48th of a context below 28,800.

    Raises:
        ValueError: the context is too small to hold tools, replies and any content.
    """
    name, count = f"{seed}/ramp", len(_RAMP_SIZES)
    reply = reply_tokens or min(_RAMP_REPLY_TOKENS, context_tokens // 48)
    total = min(most_characters, _room(context_tokens, count * reply, chars_per_token))
    texts = [
        Corpus(f"{name}/{number}", (_RAMP_GENRES[number % len(_RAMP_GENRES)],)).characters(
            max(80, round(total * size / sum(_RAMP_SIZES)))
        )
        for number, size in enumerate(_RAMP_SIZES)
    ]
    first = Turn(
        shape="turn-1",
        user=f"{say('task', name)}\n\n{texts[0]}",
        tool_choice="required",
        max_tokens=reply,
        temperature=0.3,
    )
    rest = (
        replace(first, shape=f"turn-{number}", user=None, tool_result=text)
        for number, text in enumerate(texts[1:], start=2)
    )
    return Script(seed=name, system=str(sayings()["system"]), tools=all_tools(), turns=(first, *rest), grows=True)


def _agent_tools() -> tuple[Tool, ...]:
    return pick_tools("read_file", "search_text", "run_tests", "list_folder", "show_changes")


def _room(context_tokens: int, reply_tokens: int, chars_per_token: float) -> int:
    """Return how many characters of content a session may hold."""
    tokens = context_tokens * _SHARE_OF_CONTEXT - _OVERHEAD_TOKENS - reply_tokens
    if tokens < 200:
        least = round((_OVERHEAD_TOKENS + reply_tokens + 200) / _SHARE_OF_CONTEXT)
        raise ValueError(f"a context of {context_tokens} tokens is too small: this needs {least}")
    return int(tokens * chars_per_token)
