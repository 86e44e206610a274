"""Who and what this machine is called: the names that must not leave it in a report."""

import os
import pwd
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

# They name no person and no machine.
_NOBODY: Final = frozenset({"", "root", "nobody", "localhost", "localhost.localdomain", "(none)"})
_USER_NAMES: Final = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "DOAS_USER")
_USER_IDS: Final = ("SUDO_UID", "PKEXEC_UID")


@dataclass(frozen=True, slots=True)
class Identity:
    """Names of users and hosts, and home folders; each longest first, so that a part never hides the whole."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()


def make_identity(users: Iterable[str], hosts: Iterable[str], homes: Iterable[str]) -> Identity:
    """Return an identity without empty, shared or repeated names; a host's first label counts as a name too."""
    labels = [name for host in hosts for name in (host, host.partition(".")[0])]
    return Identity(
        users=_ordered(users, _NOBODY),
        hosts=_ordered(labels, _NOBODY),
        homes=_ordered((home.rstrip("/") for home in homes), frozenset({"", "/nonexistent"})),
    )


def find_identity(environ: Mapping[str, str] | None = None) -> Identity:
    """Return the identity of this process, and of whoever called `sudo`, `doas` or `pkexec` to start it."""
    env = os.environ if environ is None else environ
    users = {env.get(name, "") for name in _USER_NAMES}
    accounts = [_account(int(text)) for name in _USER_IDS if (text := env.get(name, "")).isdigit()]
    accounts += [_account(os.getuid()), *(_account(name) for name in users)]
    known = [account for account in accounts if account is not None]
    return make_identity(
        users=(*users, *(account.pw_name for account in known)),
        hosts=(socket.gethostname(), env.get("HOSTNAME", "")),
        homes=(env.get("HOME", ""), *(account.pw_dir for account in known)),
    )


def _account(who: int | str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except (KeyError, ValueError):
        return None


def _ordered(names: Iterable[str], excluded: frozenset[str]) -> tuple[str, ...]:
    distinct = {name.strip() for name in names} - excluded
    return tuple(sorted(distinct, key=lambda name: (-len(name), name)))
