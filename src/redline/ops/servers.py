"""Finding servers, and the target that a command talks to; stopping them, with proof."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redline.engine.protocol import Signature
from redline.engine.registry import get_engine
from redline.errors import EngineStartError, InconclusiveError, NoServerError, RedlineError
from redline.launch.group import fronts, group_of, read_groups, together
from redline.launch.logfile import tail
from redline.launch.server import Stopped, end_orphan, resident_bytes, running_servers, stop
from redline.launch.state import LOG_FILE, SUPERVISOR_LOG, ServerRecord, ServerState, list_servers
from redline.ops.events import StateChanged
from redline.probe.target import Secret, Target
from redline.record.files import hold_lock
from redline.settings import Settings

_START_HINT: Final = "Start one with `redline up`, or give --url."
BUSY: Final = "Another redline command is starting or stopping a server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """A running server as `ps` shows it; memory is what its engine holds now.

    `group` is the id of its group's router and `role` what it is there; both None for a server of its own.
    """

    server_id: str
    slug: str
    url: str
    pid: int | None
    state: str
    served_model: str
    memory_bytes: int
    uptime_s: float
    log: str
    group: str | None = None
    role: str | None = None


def lock_path(settings: Settings) -> Path:
    """Return the lock under which servers are started and stopped, one command at a time."""
    return settings.state_dir / "up.lock"


def list_rows(settings: Settings, now: float) -> tuple[ServerRow, ...]:
    """Return the running servers, oldest first."""
    groups = read_groups(settings.servers_dir)
    return tuple(
        ServerRow(
            server_id=record.server_id,
            slug=record.slug,
            url=record.url,
            pid=record.engine_process.pid if record.engine_process else None,
            state=record.state.value,
            served_model=record.served_model,
            memory_bytes=resident_bytes(record),
            uptime_s=now - record.created_at,
            log=str(folder / LOG_FILE),
            group=group.router if (group := group_of(groups, record.server_id)) else None,
            role=group.role(record.server_id) if group else None,
        )
        for folder, record in running_servers(settings.servers_dir)
    )


def pick_server(settings: Settings, name: str | None) -> tuple[Path, ServerRecord]:
    """Return the server that a user means: by slug, id or port, or the only one there is.

    Copies behind a router are meant only by their own id or port; their slug means the router.

    Raises:
        NoServerError: none runs, or none of that name.
        InconclusiveError: several run and no name was given.
    """
    servers = running_servers(settings.servers_dir)
    if not servers:
        raise _none_running(settings)
    front = fronts(servers, read_groups(settings.servers_dir))
    if name is None:
        if len(front) > 1:
            names = ", ".join(record.slug for _, record in front)
            raise InconclusiveError(f"Several servers run: {names}.", next_step="Name one of them.")
        return front[0]
    for folder, record in (*front, *servers):
        if name in (record.slug, record.slug.partition("/")[2], record.server_id, str(record.port)):
            return folder, record
    names = ", ".join(record.slug for _, record in servers)
    raise NoServerError(f"No running server is called {name!r}.", next_step=f"Running: {names}.")


def _none_running(settings: Settings) -> NoServerError:
    ended = list_servers(settings.servers_dir)
    if ended and ended[-1][1].state is ServerState.FAILED:
        _, last = ended[-1]
        return NoServerError(
            f"No server is running. The last one, {last.slug}, failed: {last.reason}.",
            next_step="`redline logs` shows what its engine said. " + _START_HINT,
        )
    return NoServerError("No server is running.", next_step=_START_HINT)


def latest_server(settings: Settings, name: str | None) -> tuple[Path, ServerRecord]:
    """Return a server whose log may be read: a running one if any, else the one that ended last.

    Raises:
        NoServerError: there never was one of that name.
    """
    try:
        return pick_server(settings, name)
    except NoServerError:
        ended = [
            (folder, record)
            for folder, record in list_servers(settings.servers_dir)
            if name is None or name in (record.slug, record.slug.partition("/")[2], record.server_id)
        ]
        if not ended:
            raise
        return ended[-1]


def target_of(record: ServerRecord, settings: Settings) -> Target:
    """Return the target for a server that redline started."""
    key = settings.secret("REDLINE_API_KEY")
    return Target(
        url=record.url,
        model=record.served_model,
        engine=record.engine,
        slug=record.slug,
        server_id=record.server_id,
        api_key=Secret(key) if key else None,
    )


def wait_ready(folder: Path) -> Generator[StateChanged, None, ServerRecord]:
    """Yield a server's steps until it is ready, and return its record then.

    Raises:
        EngineStartError: it failed; carries the last log lines and the known cause, where there is one.
    """
    from redline.launch.server import follow

    final = yield from _as_events(follow(folder))
    if final.state is not ServerState.READY:
        raise explain_failure(folder, final)
    return final


def _as_events(
    steps: Generator[tuple[ServerRecord, dict[str, Any]], None, ServerRecord],
) -> Generator[StateChanged, None, ServerRecord]:
    while True:
        try:
            record, event = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        seconds = float(event["time"]) - record.created_at
        yield StateChanged(server=record, state=event["state"], text=event["text"], seconds=seconds)


def explain_failure(folder: Path, record: ServerRecord) -> RedlineError:
    """Return the error that says why a server did not start, from its state and its log."""
    lines = tail(folder / LOG_FILE, 200)
    known = match_signature(record.engine, lines)
    shown = tuple(line for line in lines if line.strip())[-5:] or tuple(tail(folder / SUPERVISOR_LOG, 5))
    why = record.reason or "it ended"
    if known is None:
        return EngineStartError(
            f"{record.slug} did not start: {why}. The cause is not one that redline knows.",
            next_step=f"Its whole log: {folder / LOG_FILE}.",
            details=shown,
        )
    return EngineStartError(
        f"{record.slug} did not start: {why}. {known.meaning}", next_step=known.remedy, details=shown
    )


def match_signature(engine_id: str, lines: list[str]) -> Signature | None:
    """Return the first fault that the log gives away, or None."""
    try:
        signatures = get_engine(engine_id).signatures
    except RedlineError:
        return None
    text = "\n".join(lines)
    return next((signature for signature in signatures if signature.text in text), None)


def down(settings: Settings, name: str | None, *, everything: bool) -> Iterator[Stopped]:
    """Stop servers and yield the proof of each stop.

    Raises:
        NoServerError: nothing to stop.
        RefusedError: another command is starting or stopping a server.
    """
    with hold_lock(lock_path(settings), BUSY):
        for _, record in list_servers(settings.servers_dir):
            end_orphan(record)
        if everything:
            servers = running_servers(settings.servers_dir)
            if not servers:
                raise _none_running(settings)
        else:
            servers = [pick_server(settings, name)]
        for folder, record in _with_group(settings, servers):
            yield stop(folder, record)


def _with_group(settings: Settings, chosen: list[tuple[Path, ServerRecord]]) -> list[tuple[Path, ServerRecord]]:
    """Return servers in the order to stop them.

    A router brings its copies along, and so does a copy whose router is gone; a copy behind a router goes alone.
    """
    groups = read_groups(settings.servers_dir)
    running = running_servers(settings.servers_dir)
    alive = {record.server_id for _, record in running}
    if len(chosen) == 1:
        name = chosen[0][1].server_id
        group = group_of(groups, name)
        if group is None or (name != group.router and group.router in alive):
            return chosen
    return together(running, groups, [record.server_id for _, record in chosen])
