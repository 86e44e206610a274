"""Single requests at the edges: a large tool result, an editor's request, an agent's history, long structured answers.

Each stands for a class of crash or refusal that a plain question never meets. Knows no server and no verdict.
"""

from dataclasses import dataclass
from typing import Any, Final

from redline.workload.conversations import Transcript
from redline.workload.corpus import Corpus, Genre
from redline.workload.salt import salted
from redline.workload.sessions import say, sayings
from redline.workload.tools import Tool, all_tools, call_id, call_message, pick_tools, result_message

IDE_SYSTEM_CHARACTERS: Final = 5000
PREFILL_CHARACTERS: Final = 100_000
HISTORY_FUNCTIONS: Final = 80
CODE_HEADINGS: Final = ("Idea", "Steps", "Code", "Cost", "Edge cases")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCase:
    """One chat to have completed, with the tools it offers (none: nothing about tools is sent)."""

    id: str
    messages: tuple[dict[str, Any], ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    max_tokens: int
    temperature: float
    top_p: float = 1.0


def tool_prefill(seed: str, characters: int = PREFILL_CHARACTERS) -> ChatCase:
    """Return a chat whose tool returned so many characters at once: the activation peak of a single large prefill."""
    text = Corpus(f"{seed}/prefill", (Genre.LISTING, Genre.LOG, Genre.REPORT, Genre.TABLE)).characters(characters)
    tools = pick_tools("read_file", "search_text")
    system = salted(f"{seed}/prefill", str(sayings()["system"]))
    history = Transcript(tools=tools, messages=({"role": "system", "content": system},))
    history = history.said(say("tool_question", seed)).with_call()
    result = result_message(history.pending[0], text)
    asked = {"role": "user", "content": say("tool_summary", seed)}
    return ChatCase(
        id="tool_prefill", messages=(*history.messages, result, asked), tools=tools, max_tokens=500, temperature=0.6
    )


def ide_shaped(seed: str) -> ChatCase:
    """Return an editor's request: 5,000 characters of rules and project, ten tools that may not be used, one wish."""
    rules = "\n".join(f"- {rule}" for rule in sayings()["ide_rules"])
    head = salted(f"{seed}/ide", f"{rules}\n\nWhat the project's index holds:\n")
    index = Corpus(f"{seed}/ide", (Genre.SEARCH,)).characters(IDE_SYSTEM_CHARACTERS - len(head))
    file = Corpus(f"{seed}/ide/file", (Genre.LISTING,)).characters(3000)
    messages = (
        {"role": "system", "content": head + index},
        {"role": "user", "content": f"{say('ide_request', seed)}\n\n```\n{file}\n```"},
    )
    return ChatCase(
        id="ide_shaped", messages=messages, tools=all_tools(), tool_choice="none", max_tokens=2000, temperature=0.0
    )


def agent_history(seed: str, functions: int = HISTORY_FUNCTIONS) -> ChatCase:
    """Return a chat in the middle of an agent's work: four tools, and a file of so many functions read before."""
    system = salted(f"{seed}/agent", "\n".join(sayings()["agent_system"]))
    file = Corpus(f"{seed}/agent", (Genre.LISTING,)).parts(functions)
    listed = Corpus(f"{seed}/agent/folder", (Genre.SEARCH,)).characters(600)
    messages = (
        {"role": "system", "content": system},
        {"role": "user", "content": say("task", seed)},
        call_message([(call_id(0), "list_folder", '{"path": "src"}')], "I look at the folder first."),
        result_message(call_id(0), listed),
        call_message([(call_id(1), "read_file", '{"path": "src/core.py"}')]),
        result_message(call_id(1), file),
        {"role": "user", "content": say("agent_request", seed)},
    )
    return ChatCase(
        id="agent_history",
        messages=messages,
        tools=pick_tools("list_folder", "read_file", "search_text", "edit_file"),
        max_tokens=1500,
        temperature=0.6,
        top_p=0.95,
    )


def structured_code(seed: str) -> ChatCase:
    """Return a programming task whose answer has five given headings, `CODE_HEADINGS`."""
    asked = salted(f"{seed}/code", str(sayings()["structured_request"]))
    return ChatCase(
        id="structured_code", messages=({"role": "user", "content": asked},), max_tokens=4096, temperature=0.0
    )


def long_reasoning(seed: str) -> ChatCase:
    """Return a proof to be found and checked: many tokens in a row, where drafting may fail or the end come early."""
    asked = salted(f"{seed}/reasoning", str(sayings()["reasoning_request"]))
    return ChatCase(
        id="long_reasoning", messages=({"role": "user", "content": asked},), max_tokens=8192, temperature=0.0
    )
