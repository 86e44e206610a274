"""Starts a server of redline anew from the very plan it was started with, for measuring over several boots."""

import os
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

from redline.engine.launch_plan import launch_plan_from_dict
from redline.errors import FaultError, RedlineError
from redline.launch.server import register, start, stop
from redline.launch.state import PLAN_FILE, ServerRecord, read_record
from redline.ops.events import Event, Replacing, Started
from redline.ops.servers import BUSY, lock_path, wait_ready
from redline.ops.stream import deferred_signals
from redline.ops.up import CONDITIONS_FILE, keep_conditions
from redline.record.files import hold_lock, read_json
from redline.settings import Settings


def reboot(settings: Settings, folder: Path, record: ServerRecord) -> Generator[Event, None, tuple[Path, ServerRecord]]:
    """Yield the steps of stopping a server and starting it again; return its new folder and record.

    Raises:
        EngineStartError: it did not come back.
        RefusedError: another command is starting or stopping a server.
    """
    data, conditions = read_json(folder / PLAN_FILE), read_json(folder / CONDITIONS_FILE)
    if data is None:
        raise FaultError(f"The plan of {record.slug} cannot be read.", next_step=f"Look at {folder / PLAN_FILE}.")
    plan = launch_plan_from_dict(data)
    with hold_lock(lock_path(settings), BUSY):
        yield Replacing(server=record)
        yield stop(folder, record)
        again, fresh = register(settings.servers_dir, plan)
        if conditions is not None:
            keep_conditions(again, conditions)
        secrets = {name: value for name in plan.secret_env if (value := settings.secret(name))}
        try:
            with deferred_signals():
                start(again, {**os.environ, **secrets})
            fresh = yield from wait_ready(again)
        except (KeyboardInterrupt, GeneratorExit, SystemExit):
            with suppress(RedlineError):
                stop(again, read_record(again) or fresh)
            raise
    yield Started(server=fresh, seconds=(fresh.ready_at or fresh.created_at) - fresh.created_at)
    return again, fresh
