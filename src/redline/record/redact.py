"""Takes out of free text what names a person, a machine or a secret, and leaves every other word as it was.

A name is replaced where it stands as a token of its own, never inside a word. A name that is also a common word
(`gpu`, `capital`, one letter) is replaced only where its surroundings say that it is a name: a path, `user@host`,
`USER=`, `hostname:`, the output of `uname -a`, `ls -l` or syslog.
"""

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from redline.record.identity import Identity
from redline.record.patterns import HIDING_FLAG, RULES, Rule, is_ordinary

_WINDOWS_USERS: Final = r"(?i:[A-Z]:|/mnt/[a-z])[\\/]{1,2}Users[\\/]{1,2}"
_HIDES_NEXT: Final = re.compile(HIDING_FLAG, re.IGNORECASE)
# Accounts that many machines have, and folders beside the homes of people.
_SHARED_HOMES: Final = r"(?:linuxbrew|Public|Shared|Default|All Users|ubuntu|runner)(?![^/\\\s:'\"])"


class Redactor:
    """Redacts texts of one document: equal marks get equal numbers in all of them, so relations can still be seen."""

    def __init__(self, identity: Identity) -> None:
        self._numbers: dict[str, dict[str, int]] = {}
        self._homes = [re.compile(rf"(?<![\w.-]){re.escape(home)}(?![\w-]|\.\w)") for home in identity.homes]
        self._names = [
            *(("user", pattern) for name in identity.users for pattern in _name_patterns(name, _USER_CONTEXTS)),
            *(("host", pattern) for name in identity.hosts for pattern in _name_patterns(name, _HOST_CONTEXTS)),
        ]

    def text(self, text: str) -> str:
        """Return the text with every mark replaced by its kind in angle brackets, and homes of this user by `~`."""
        for rule in RULES:
            text = rule.pattern.sub(lambda match, rule=rule: self._replace(rule, match), text)  # type: ignore[misc]
        for pattern in self._homes:
            text = pattern.sub("~", text)
        for kind, pattern in (*_GENERAL, *self._names):
            text = pattern.sub(lambda match, kind=kind: _cut(match, f"<{kind}>"), text)  # type: ignore[misc]
        return text

    def argv(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """Return a command line redacted, the value after a flag such as `--api-key` included."""
        shown: list[str] = []
        hidden = False
        for argument in arguments:
            shown.append("<secret>" if hidden else self.text(argument))
            hidden = _HIDES_NEXT.fullmatch(argument) is not None
        return tuple(shown)

    def _replace(self, rule: Rule, match: re.Match[str]) -> str:
        if not rule.accept(match):
            return match[0]
        if not rule.numbered:
            return _cut(match, f"<{rule.kind}>")
        known = self._numbers.setdefault(rule.kind, {})
        number = known.setdefault(match["x"].lower(), len(known) + 1)
        return _cut(match, f"<{rule.kind}-{number}>")


class NoRedactor(Redactor):
    """Leaves everything as it is, for the user's own eyes and for the preview of what a redactor would change."""

    def __init__(self) -> None:
        super().__init__(Identity())

    def text(self, text: str) -> str:
        """Return the text."""
        return text

    def argv(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """Return the arguments."""
        return tuple(arguments)


def preview(before: str, after: str) -> str:
    """Return what redaction changed, as a unified diff of the changed lines; empty when nothing did."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "as recorded", "as shared", lineterm="", n=0)
    return "\n".join(lines)


def _cut(match: re.Match[str], label: str) -> str:
    """Return the match with its captured part replaced."""
    groups = [name for name in ("x", "q1", "q2", "q3") if name in match.re.groupindex and match[name] is not None]
    if not groups:
        return label
    whole, begin = match[0], match.start()
    start, end = match.span(groups[0])
    return whole[: start - begin] + label + whole[end - begin :]


# Where a name is a name, whatever word it is. NAME stands for it; `x` is what is taken out.
_AFTER_KEY: Final = r"[\"']?\s{0,3}(?:[:=]|\bis\b)\s{0,3}[\"']?(?P<x>NAME)(?![^\W_])"
_LS: Final = r"(?m)^[-bcdlps][-rwxsStT]{9}[.+@]?\s{1,9}\d{1,9}\s{1,9}"
_USER_CONTEXTS: Final = (
    r"(?<![^\W_])(?P<x>NAME)(?=@[\w<])",
    r"(?:\b(?:user(?:name)?|logname|sudo_user|owner|login|account)|[-_]user)" + _AFTER_KEY,
    r"\b(?:chown|su|sudo -u|(?:for|by|as) user)\s(?:-\s)?[\"']?(?P<x>NAME)(?![^\W_])",
    r"(?<=~)(?P<x>NAME)(?=[/\s:]|$)",
    r"/(?:media|run/media|mnt|srv|scratch|users|home\d?)/(?P<x>NAME)(?![\w.-])",
    _LS + r"(?P<x>NAME)(?=\s)",
    _LS + r"\S{1,64}\s{1,9}(?P<x>NAME)(?=\s)",
)
_HOST_CONTEXTS: Final = (
    r"(?<=@)(?P<x>NAME)(?![^\W_])",
    r"\b(?:host(?:_?name)?|node_?name|machine(?: ?name)?|computer(?: ?name)?|server_?name)" + _AFTER_KEY,
    r"\b(?:(?:on|from|to) host|ssh) (?P<x>NAME)(?=[:/.,;]?(?:\s|$))",
    r"\bLinux\s(?P<x>NAME)(?=\s\d)",
    r"(?m)^(?:[A-Z][a-z]{2}\s{1,2}\d{1,2}\s[\d:]{8}|\d{4}-\d\d-\d\dT\S{1,40})\s(?P<x>NAME)(?=\s)",
    r"(?<![\w.-])(?P<x>NAME\.(?:local|lan|home|internal|localdomain|intranet|corp|arpa|ts\.net))(?![\w-])",
    r"(?<=://)(?P<x>NAME)(?=[:/\s]|$)",
)


@lru_cache(maxsize=64)
def _name_patterns(name: str, contexts: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    quoted = re.escape(name)
    in_context = (re.compile(context.replace("NAME", quoted), re.IGNORECASE) for context in contexts)
    return (*in_context, *_bare(name))


def _bare(name: str) -> Iterable[re.Pattern[str]]:
    """A name of its own, anywhere: between characters that are neither letters nor digits."""
    if is_ordinary(name):
        return []
    return [re.compile(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", re.IGNORECASE)]


# Logs of other machines name people too: what their paths, prompts and environments give away.
_GENERAL: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("user", rf"(?<![\w.])/(?:var/|export/)?(?:home|Users)/(?!{_SHARED_HOMES})(?P<x>[\w][\w.-]{{0,63}})"),
        ("user", rf"{_WINDOWS_USERS}(?!{_SHARED_HOMES})(?P<x>[^\\/:*?\"<>|\r\n]{{1,64}})(?=[\\/])"),
        ("user", r"(?<![\w.@/-])(?!git@)(?P<x>[A-Za-z_][\w.-]{0,31})(?=@[A-Za-z0-9][A-Za-z0-9.-]{0,62}:[~/])"),
        ("host", r"(?<=<user>@)(?P<x>[A-Za-z0-9][A-Za-z0-9.-]{0,62})(?=:[~/])"),
        ("user", r"\b(?:USER|LOGNAME|SUDO_USER|USERNAME)=[\"']?(?P<x>[A-Za-z_][\w.-]{0,31})"),
        ("host", r"\bHOSTNAME=[\"']?(?P<x>[A-Za-z0-9][\w.-]{0,63})"),
    )
)
