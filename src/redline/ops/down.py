"""Stopping servers, with proof, and ending engines that outlived their supervisor."""

from collections.abc import Iterator
from pathlib import Path

from redline.launch.group import Server, fronts, group_of, read_groups, together
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord
from redline.launch.stop import Orphan, Stopped, end_orphan, find_orphans, stopping
from redline.ops.server_events import Outlived, Stopping
from redline.ops.servers import BUSY, lock_path, none_running, not_called, several
from redline.record.files import hold_lock
from redline.settings import Settings


def down(
    settings: Settings, name: str | None, *, everything: bool, now: bool = False
) -> Iterator[Stopped | Stopping | Outlived]:
    """Stop servers and yield the proof of each stop, and what is waited for on the way.

    Raises:
        NoServerError: nothing to stop.
        InconclusiveError: several run and no name was given.
        RefusedError: another command is starting or stopping a server.
        FaultError: a process would not end; the others were stopped all the same.
    """
    with hold_lock(lock_path(settings), BUSY):
        servers, orphans = _meant(settings, name, everything=everything)
        for orphan in orphans:
            yield Outlived(orphan=orphan)
            yield end_orphan(orphan)
        for folder, record in _with_group(settings, servers):
            yield from stop_with_words(folder, record, now=now)


def stop_with_words(folder: Path, record: ServerRecord, *, now: bool = False) -> Iterator[Stopped | Stopping]:
    """Stop a server, yielding what is waited for and then the proof."""
    steps = stopping(folder, record, now=now)
    while True:
        try:
            yield Stopping(server=record, text=next(steps))
        except StopIteration as end:
            proof: Stopped = end.value
            yield proof
            return


def _with_group(settings: Settings, chosen: list[Server]) -> list[Server]:
    """Return servers in the order to stop them.

    A router brings its copies along, and so does a copy whose router is gone; a copy behind a router goes alone.
    """
    groups, running = read_groups(settings.servers_dir), running_servers(settings.servers_dir)
    alive = {record.server_id for _, record in running}
    if len(chosen) == 1:
        name = chosen[0][1].server_id
        group = group_of(groups, name)
        if group is None or (name != group.router and group.router in alive):
            return chosen
    return together(running, groups, [record.server_id for _, record in chosen])


def _meant(
    settings: Settings, name: str | None, *, everything: bool
) -> tuple[list[tuple[Path, ServerRecord]], list[Orphan]]:
    servers, orphans = running_servers(settings.servers_dir), find_orphans(settings.servers_dir)
    records = [record for _, record in servers] + [orphan.record for orphan in orphans]
    if not records:
        raise none_running(settings)
    if everything:
        return servers, orphans
    front = fronts(servers, read_groups(settings.servers_dir))
    if name is None:
        seen = [record for _, record in front] + [orphan.record for orphan in orphans]
        if len(seen) > 1:
            raise several(seen)
        return front, orphans
    chosen = [item for item in (*front, *servers) if item[1].called(name)][:1]
    left = [orphan for orphan in orphans if orphan.record.called(name)]
    if not chosen and not left:
        raise not_called(name, records)
    return chosen, left
