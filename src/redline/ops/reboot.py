"""Starts a server of redline anew from the very plan it was started with, for measuring over several boots."""

from collections.abc import Generator
from pathlib import Path

from redline.launch.state import ServerRecord
from redline.launch.stop import stop
from redline.ops.events import Event
from redline.ops.launching import start_again
from redline.ops.server_events import Replacing, Started
from redline.ops.servers import BUSY, lock_path
from redline.record.files import hold_lock
from redline.settings import Settings


def reboot(settings: Settings, folder: Path, record: ServerRecord) -> Generator[Event, None, tuple[Path, ServerRecord]]:
    """Yield the steps of stopping a server and starting it again; return its new folder and record.

    Raises:
        EngineStartError: it did not come back.
        RefusedError: another command is starting or stopping a server.
    """
    with hold_lock(lock_path(settings), BUSY):
        yield Replacing(server=record, why="measured over several boots")
        yield stop(folder, record)
        fresh = yield from start_again(settings, folder)
    yield Started(server=fresh, seconds=fresh.ready_s or 0.0)
    return settings.servers_dir / fresh.server_id, fresh
