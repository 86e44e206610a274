"""Finding servers, and the target that a command talks to. Light: it loads no client, no catalogue and no checks."""

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from redline.errors import EngineStartError, InconclusiveError, NoServerError, RedlineError
from redline.launch.boot_times import Expectation, expectation
from redline.launch.family import Family, family_of
from redline.launch.group import Group, fronts, group_of, read_groups
from redline.launch.server import follow, running_servers
from redline.launch.state import (
    LOG_FILE,
    SUPERVISOR_LOG,
    ServerRecord,
    ServerState,
    Unreadable,
    event_seconds,
    list_servers,
    read_history,
    scan_servers,
)
from redline.launch.stop import Orphan, find_orphans
from redline.ops.server_events import StateChanged
from redline.probe.target import Secret, Target
from redline.rig.processes import age_s, read_processes
from redline.settings import Settings

if TYPE_CHECKING:
    from redline.engine.diagnose import Diagnosis

_START_HINT: Final = "Start one with `redline up`, or give --url."
_TICK_S: Final = 0.5
_KILLED: Final = (-9, 137)  # as a signal, and as a container's or a shell's exit status
OUTLIVED: Final = "outlived"
BUSY: Final = "Another redline command is starting or stopping a server"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRow:
    """A running server as `ps` shows it; memory is what its engine holds now.

    Its state is `outlived` where its supervisor is gone and its engine is not; `remaining_s` is what earlier boots lead
    to expect until it is ready. `group` is the id of its group's router and `role` what it is there; both None for a
    server of its own.
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
    form: str = "embedded"
    container: str | None = None
    progress: float | None = None
    remaining_s: float | None = None
    restarts: int = 0
    lost_log_bytes: int = 0
    group: str | None = None
    role: str | None = None


def lock_path(settings: Settings) -> Path:
    """Return the lock under which servers are started and stopped, one command at a time."""
    return settings.state_dir / "up.lock"


def list_rows(settings: Settings) -> tuple[tuple[ServerRow, ...], tuple[Unreadable, ...]]:
    """Return the running servers and the engines that outlived theirs, oldest first, and what cannot be read."""
    table = read_processes()
    running = running_servers(settings.servers_dir)
    orphans = find_orphans(settings.servers_dir, table)
    rows = [_row(settings, folder, record, family_of(folder, record, table)) for folder, record in running]
    rows += [_outlived(orphan) for orphan in orphans]
    groups = read_groups(settings.servers_dir)
    rows = [_with_role(row, group_of(groups, row.server_id)) for row in rows]
    return tuple(rows), tuple(scan_servers(settings.servers_dir)[1])


def _row(settings: Settings, folder: Path, record: ServerRecord, family: Family) -> ServerRow:
    expected = expectation(settings.servers_dir, record.slug, record.engine_version, record.form)
    return ServerRow(
        server_id=record.server_id,
        slug=record.slug,
        url=record.url,
        pid=record.engine_process.pid if record.engine_process else None,
        state=record.state.value,
        served_model=record.served_model,
        memory_bytes=family.resident_bytes,
        uptime_s=record.age_s or 0.0,
        log=str(folder / LOG_FILE),
        form=record.form,
        container=record.container,
        progress=record.progress,
        remaining_s=_remaining_s(folder, record, expected),
        restarts=record.restarts,
        lost_log_bytes=record.lost_log_bytes,
    )


def _with_role(row: ServerRow, group: Group | None) -> ServerRow:
    return row if group is None else replace(row, group=group.router, role=group.role(row.server_id))


def _outlived(orphan: Orphan) -> ServerRow:
    record, members = orphan.record, orphan.family.members
    return ServerRow(
        server_id=record.server_id,
        slug=record.slug,
        url=record.url,
        pid=members[0].pid if members else None,
        state=OUTLIVED,
        served_model=record.served_model,
        memory_bytes=orphan.family.resident_bytes,
        uptime_s=age_s(members[0].start_ticks) if members else record.age_s or 0.0,
        log=str(orphan.folder / LOG_FILE),
        form=record.form,
        container=orphan.container,
    )


def _remaining_s(folder: Path, record: ServerRecord, expected: Expectation | None) -> float | None:
    if expected is None or record.state is ServerState.READY or record.age_s is None:
        return None
    began = next(
        (event_seconds(record, event) for event in reversed(read_history(folder)) if event["state"] != record.state),
        0.0,
    )
    return expected.remaining_s(record.state.value, record.age_s - began)


def pick_server(settings: Settings, name: str | None) -> tuple[Path, ServerRecord]:
    """Return the server that a user means: by slug, id or port, or the only one there is.

    Copies behind a router are meant only by their own id or port; their slug means the router.

    Raises:
        NoServerError: none runs, or none of that name.
        InconclusiveError: several run and no name was given.
    """
    servers = running_servers(settings.servers_dir)
    if not servers:
        raise none_running(settings)
    front = fronts(servers, read_groups(settings.servers_dir))
    if name is None:
        if len(front) > 1:
            raise several([record for _, record in front])
        return front[0]
    for folder, record in (*front, *servers):
        if record.called(name):
            return folder, record
    raise not_called(name, [record for _, record in servers])


def several(records: list[ServerRecord]) -> InconclusiveError:
    """Return the error that says a name is needed."""
    names = ", ".join(f"{record.slug} (port {record.port})" for record in records)
    return InconclusiveError(f"Several servers run: {names}.", next_step="Name one of them.")


def not_called(name: str, records: list[ServerRecord]) -> NoServerError:
    """Return the error that says no server has that name."""
    names = ", ".join(dict.fromkeys(record.slug for record in records))
    return NoServerError(f"No server is called {name!r}.", next_step=f"There are: {names}." if names else _START_HINT)


def none_running(settings: Settings) -> NoServerError:
    """Return the error that says nothing runs, and how the last one ended."""
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
        ended = [item for item in list_servers(settings.servers_dir) if name is None or item[1].called(name)]
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

    A step is also yielded now and then while nothing changes, with how far it is and what is to be expected.

    Raises:
        EngineStartError: it failed; carries the last log lines and the known cause, where there is one.
    """
    final = yield from _steps(folder)
    if final.state is not ServerState.READY:
        raise explain_failure(folder, final)
    return final


def _steps(folder: Path) -> Generator[StateChanged, None, ServerRecord]:
    steps = follow(folder, _TICK_S)
    expected: Expectation | None = None
    state, text, began = "", "", 0.0
    while True:
        try:
            record, event = next(steps)
        except StopIteration as end:
            final: ServerRecord = end.value
            return final
        if event is not None:
            seconds = event_seconds(record, event)
            began = began if event["state"] == state else seconds
            state, text = str(event["state"]), str(event["text"])
            expected = expected or expectation(folder.parent, record.slug, record.engine_version, record.form)
        else:
            seconds = record.age_s or began
        left = expected.remaining_s(state, seconds - began) if expected else None
        share = record.progress if record.state.value == state else None
        yield StateChanged(server=record, state=state, text=text, seconds=seconds, progress=share, remaining_s=left)


def explain_failure(folder: Path, record: ServerRecord) -> RedlineError:
    """Return the error that says why a server did not start, from its state and its log."""
    from redline.engine.diagnose import DiagnosisVerdict
    from redline.launch.logfile import tail

    found = diagnose_log(folder, record)
    why = record.reason or "it ended"
    if found.verdict is DiagnosisVerdict.KNOWN:
        return EngineStartError(
            f"{record.slug} did not start: {why}. {found.cause}",
            next_step=" Or: ".join(found.remedies),
            details=(found.evidence or "",),
        )
    words = ""
    if record.exit_code in _KILLED:
        words = " Something killed it; the kernel does when memory runs out, and says so in dmesg."
    elif found.verdict is DiagnosisVerdict.UNKNOWN:
        words = " The cause is not one that redline knows."
    return EngineStartError(
        f"{record.slug} did not start: {why}.{words}",
        next_step=f"Its whole log: {folder / LOG_FILE}.",
        details=found.tail[-5:] or tuple(tail(folder / SUPERVISOR_LOG, 5)),
    )


def diagnose_log(folder: Path, record: ServerRecord) -> "Diagnosis":
    """Return the diagnosis of a server's log; a log that cannot be read shows nothing."""
    from redline.engine.diagnose import diagnose
    from redline.ops.diagnose import diagnose_file

    try:
        return diagnose_file(str(folder / LOG_FILE), record.engine)
    except RedlineError:
        return diagnose((), record.engine)
