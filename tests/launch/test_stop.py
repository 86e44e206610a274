"""Engines that outlive their supervisor are found by pid, start time and group, and ended; strangers never are."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.launch.scripted import (
    STUBBORN,
    Port,
    alive,
    boot,
    launch,
    log_words,
    make_plan,
    record_of,
    wait_for,
    worker_pids,
)

from redline.launch.family import family_of, find_family
from redline.launch.server import running_servers
from redline.launch.state import ServerState, write_record
from redline.launch.stop import end_orphan, find_orphans, stop
from redline.rig.process import ProcessId, identify
from redline.rig.processes import ProcessRow, read_processes

SLEEPER = "import time; time.sleep(600)"


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that looks like an engine and is none of ours."""
    process = subprocess.Popen([sys.executable, "-c", SLEEPER, "vllm", "serve"], start_new_session=True)
    yield process
    assert process.poll() is None, "a stranger was touched"
    process.kill()
    process.wait()


def test_workers_of_a_dead_supervisor_are_found_named_and_ended(
    tmp_path: Path, free_port: Port, stranger: "subprocess.Popen[bytes]"
) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()), WORKERS="4")
    workers = worker_pids(folder, 4)
    wait_for(lambda: set(workers) <= set(family_of(folder, record).pids))
    wait_for((folder / "processes.json").exists)
    assert record.supervisor is not None
    assert record.engine_process is not None
    engine = record.engine_process
    os.kill(record.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not engine.alive())  # it was tied; its workers were not
    [orphan] = find_orphans(tmp_path)
    assert orphan.record.state is ServerState.FAILED
    assert orphan.record.reason == "its supervisor ended without a word (killed?)"
    assert set(orphan.family.pids) == set(workers)
    assert str(workers[0]) in orphan.describe()
    proof = end_orphan(orphan)
    assert proof.port_free
    assert not any(alive(pid) for pid in workers)
    assert find_orphans(tmp_path) == []
    assert record_of(folder).ended


def test_a_supervisor_killed_between_start_and_record_leaves_nothing_unfound(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()), WORKERS="2")
    workers = worker_pids(folder, 2)
    assert record.supervisor is not None
    os.kill(record.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not record.supervised)
    (folder / "processes.json").unlink(missing_ok=True)
    write_record(folder, replace(record, engine_process=None, state=ServerState.STARTING))
    [orphan] = find_orphans(tmp_path)
    assert set(workers) <= set(orphan.family.pids)
    end_orphan(orphan)
    assert not any(alive(pid) for pid in workers)


def test_a_pid_that_was_given_to_a_stranger_is_no_orphan(
    tmp_path: Path, free_port: Port, stranger: "subprocess.Popen[bytes]"
) -> None:
    folder, record = boot(tmp_path, make_plan(free_port(), "raise SystemExit(1)"))
    wait_for(lambda: not record.supervised)
    taken = identify(stranger.pid)
    assert taken is not None
    # What a record of an engine looks like whose number was given to a stranger afterwards.
    earlier = ProcessId(taken.pid, taken.start_ticks - 100, taken.boot_id)
    write_record(folder, replace(record, state=ServerState.READY, engine_process=earlier, ended=False))
    assert running_servers(tmp_path) == []
    assert find_orphans(tmp_path) == []
    stop(folder, record_of(folder))
    assert not earlier.send(signal.SIGKILL)


def row(
    pid: int, *, parent: int = 1, group: int = 0, session: int = 0, start: int = 100, state: str = "S"
) -> ProcessRow:
    return ProcessRow(pid, f"p{pid}", state, parent, group or pid, session or pid, 0, start, 1000)


def test_who_belongs_to_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = identify(os.getpid())
    assert boot is not None
    leader = ProcessId(50, 100, boot.boot_id)
    monkeypatch.setattr("redline.launch.family.environment_holds", lambda pid, _: pid == 55)
    rows = [
        row(50, state="Z"),  # the engine itself, dead and not yet reaped
        row(51, group=50, session=50, start=120),
        row(52, parent=51, start=130),  # in a session of its own, started by a member
        row(53, start=140),  # nobody's
        row(54, group=50, session=50, start=90),  # older than the engine: the number was its group's before
    ]
    table = {item.pid: item for item in rows}
    assert find_family("s", leader, (), table).pids == (51, 52)
    gone = {item.pid: item for item in rows[1:]} | {55: row(55, group=50, start=150)}
    assert find_family("s", leader, (), gone).pids == (55,)  # without its leader only the mark tells
    seen = (ProcessId(51, 120, boot.boot_id),)
    assert find_family("s", leader, seen, gone).pids == (51, 52, 55)
    taken = gone | {50: row(50, start=500)}  # a stranger was given the number
    assert find_family("s", leader, seen, taken).pids == (51, 52)
    assert find_family("s", ProcessId(50, 100, "another-boot"), seen, table).pids == ()


def test_one_reading_shows_this_process_and_its_parent() -> None:
    table = read_processes()
    own = table[os.getpid()]
    assert own.parent == os.getppid()
    assert own.resident_bytes > 2**20
    assert own.identity.alive()


def test_stopping_a_server_twice_is_harmless(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()))
    assert stop(folder, record).released_bytes > 0
    again = stop(folder, record)
    assert (again.port_free, again.released_bytes) == (True, 0)


def test_a_server_is_stopped_while_its_supervisor_appears(tmp_path: Path, free_port: Port) -> None:
    folder = launch(tmp_path, make_plan(free_port()), LOAD_S="30")
    stop(folder, record_of(folder))
    assert record_of(folder).state is ServerState.STOPPED


def test_a_suspended_supervisor_is_woken_to_stop(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()))
    assert record.supervisor is not None
    os.kill(record.supervisor.pid, signal.SIGSTOP)
    proof = stop(folder, record)
    assert (proof.port_free, proof.outlived) == (True, "")
    assert not record.supervisor.alive()
    assert record_of(folder).state is ServerState.STOPPED


def test_a_supervisor_that_does_not_end_is_killed_and_its_engine_too(
    tmp_path: Path, free_port: Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = launch(tmp_path, make_plan(free_port(), STUBBORN, grace_s=60, timeout_s=300))
    [[_, child]] = wait_for(lambda: log_words(folder, "child"))
    record = record_of(folder)
    assert record.supervisor is not None
    monkeypatch.setattr("redline.launch.stop._BEYOND_ENGINE_S", -64.0)  # the plan's own 65 s, less all but one
    proof = stop(folder, record, now=True)
    assert proof.port_free
    assert not record.supervisor.alive()
    assert not alive(int(child))
    assert record_of(folder).ended
