"""A launch plan as a command that a shell would run: variables first, one flag a line."""

import shlex
from collections.abc import Iterable

from redline.engine.launch_plan import LaunchPlan


def render_argv(plan: LaunchPlan) -> str:
    """Return the command as text, its variables before it. Secrets are not in it: the engine reads them from its own.

    The text is for reading and for a shell; redline itself runs `plan.argv` without one.
    """
    variables = [f"{name}={shlex.quote(value)}" for name, value in plan.env.items()]
    return join_lines([*variables, *group_flags(plan.argv)])


def group_flags(argv: Iterable[str]) -> list[str]:
    """Return the words of a command, quoted, with each flag and its values as one piece."""
    pieces: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("-") and pieces[-1]:
            pieces.append([])
        pieces[-1].append(shlex.quote(word))
    return [" ".join(piece) for piece in pieces if piece]


def join_lines(pieces: Iterable[str]) -> str:
    """Return pieces of one command on lines of their own."""
    return " \\\n  ".join(pieces) + "\n"
