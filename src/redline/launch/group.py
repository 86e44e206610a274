"""Copies of a tier and the router before them, as one thing: written down beside the router's own record.

Each is an ordinary server with its own supervisor; this only says which belong together. A group whose router is gone
is still one, so that its copies are found and stopped with it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from redline.launch.state import ServerRecord
from redline.record.files import read_json, write_atomic

GROUP_FILE: Final = "group.json"
SCHEMA: Final = 1
Server = tuple[Path, ServerRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One router and its copies, by server id."""

    router: str
    members: tuple[str, ...]

    @property
    def ids(self) -> frozenset[str]:
        """All of them."""
        return frozenset((self.router, *self.members))

    def role(self, server_id: str) -> str:
        """Return what a server is in it: `router`, or `copy 1` and so on."""
        return "router" if server_id == self.router else f"copy {self.members.index(server_id) + 1}"


def write_group(directory: Path, group: Group) -> None:
    """Write a group into the folder of its router."""
    write_atomic(directory / GROUP_FILE, json.dumps({"schema_version": SCHEMA, **asdict(group)}, indent=1) + "\n")


def read_groups(servers_dir: Path) -> tuple[Group, ...]:
    """Return every group on record, whether its servers run or not."""
    found = []
    for path in sorted(servers_dir.glob(f"*/{GROUP_FILE}")):
        data = read_json(path)
        if isinstance(data, dict) and data.get("schema_version") == SCHEMA:
            found.append(Group(router=str(data["router"]), members=tuple(data["members"])))
    return tuple(found)


def group_of(groups: Iterable[Group], server_id: str) -> Group | None:
    """Return the group that a server belongs to."""
    return next((group for group in groups if server_id in group.ids), None)


def together(servers: Sequence[Server], groups: Sequence[Group], chosen: Iterable[str]) -> list[Server]:
    """Return the servers of some ids with all that belong to them, routers first: they must not outlive a copy."""
    wanted = set(chosen)
    for group in groups:
        if wanted & group.ids:
            wanted |= group.ids
    routers = {group.router for group in groups}
    picked = [server for server in servers if server[1].server_id in wanted]
    return sorted(picked, key=lambda server: server[1].server_id not in routers)


def fronts(servers: Sequence[Server], groups: Sequence[Group]) -> list[Server]:
    """Return the servers a user talks to: one of each group, its router, or the first copy left without one."""
    running = [record.server_id for _, record in servers]
    hidden: set[str] = set()
    for group in groups:
        left = [name for name in (group.router, *group.members) if name in running]
        hidden |= set(left[1:])
    return [server for server in servers if server[1].server_id not in hidden]
