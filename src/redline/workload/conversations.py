"""Scripted conversations: what the user and the tools say, turn by turn, while the model's part is still open.

A script is frozen; a `Transcript` is the history it leads to once the model has answered, and grows by returning a new
one. No two sessions share content, or a prefix cache would answer for the model. Knows no server and gives no verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from redline.workload.salt import salted
from redline.workload.tools import Tool, call_id, call_message, result_message, tool_name, usable_arguments

STUB_RESULT: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What comes before the model's next answer, and how it is asked for.

    `tool_result` answers the model's last call; `user` is said after it, or nothing is where it is None. `opening` is
    what the user said before a call that the script itself makes, for a turn that stands alone. `thinking` is what the
    turn asks for, None for whatever the server does.
    """

    shape: str
    user: str | None
    opening: str | None = None
    tool_result: str | None = None
    tool_choice: str = "auto"
    max_tokens: int
    temperature: float
    thinking: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A session: its turns, and its tools if the model has any. Where it does not grow, each turn stands alone."""

    seed: str
    system: str
    tools: tuple[Tool, ...]
    turns: tuple[Turn, ...]
    grows: bool

    def start(self, turn: int = 0) -> "Transcript":
        """Return the empty history before a turn: the first of a session that grows, any of one that does not.

        It begins with a salt of its own, so that no turn finds another's beginning in a prefix cache.
        """
        system = salted(f"{self.seed}/{turn}", self.system)
        return Transcript(tools=self.tools, messages=({"role": "system", "content": system},))

    def without_tools(self) -> "Script":
        """Return the same session for a model that has no tools: what tools return is said by the user."""
        turns = []
        for turn in self.turns:
            said = "\n\n".join(text for text in (turn.opening, turn.tool_result, turn.user) if text)
            turns.append(replace(turn, user=said, opening=None, tool_result=None, tool_choice="none"))
        return replace(self, tools=(), turns=tuple(turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A history. `pending` are calls without a result yet; the two counts say where the model's part was put right.

    `invented`: a call stands in the history that the model did not make, since a result had to answer something.
    `repaired`: a call was no JSON object or named no tool, and stands with empty arguments or under an offered name.
    """

    tools: tuple[Tool, ...]
    messages: tuple[dict[str, Any], ...]
    pending: tuple[str, ...] = ()
    calls: int = 0
    invented: int = 0
    repaired: int = 0

    def asked(self, turn: Turn) -> "Transcript":
        """Return the history with a turn's tool result and user message, every pending call answered."""
        now = self
        if turn.opening is not None:
            now = now.said(turn.opening).with_call()
        elif turn.tool_result is not None and not self.pending:
            now = replace(now.with_call(), invented=self.invented + 1)
        for index, number in enumerate(now.pending):
            text = turn.tool_result if index == 0 and turn.tool_result is not None else STUB_RESULT
            now = replace(now, messages=(*now.messages, result_message(number, text)))
        now = replace(now, pending=())
        return now if turn.user is None else now.said(turn.user)

    def said(self, user: str) -> "Transcript":
        """Return the history with a message of the user."""
        return replace(self, messages=(*self.messages, {"role": "user", "content": user}))

    def with_call(self) -> "Transcript":
        """Return the history with a call of the first tool, in the model's last message or in a new one."""
        last = self.messages[-1]
        into_last = last["role"] == "assistant"
        kept = self.messages[:-1] if into_last else self.messages
        number = call_id(self.calls)
        call = call_message(
            [(number, tool_name(self.tools[0]), '{"path": "README.md"}')], str(last["content"]) if into_last else ""
        )
        return replace(self, messages=(*kept, call), pending=(number,), calls=self.calls + 1)

    def answered(self, content: str, calls: Sequence[tuple[str, str]] = ()) -> "Transcript":
        """Return the history with the model's answer: its content, and its calls as name and arguments."""
        offered = [tool_name(tool) for tool in self.tools]
        kept, repaired = [], 0
        for index, (name, arguments) in enumerate(calls):
            usable = usable_arguments(self.tools, name, arguments)
            repaired += usable is None
            if offered:
                kept.append((call_id(self.calls + index), name if name in offered else offered[0], usable or "{}"))
        message = call_message(kept, content) if kept else {"role": "assistant", "content": content}
        return replace(
            self,
            messages=(*self.messages, message),
            pending=tuple(number for number, _, _ in kept),
            calls=self.calls + len(kept),
            repaired=self.repaired + repaired,
        )
