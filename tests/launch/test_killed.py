"""Each process of a server killed with SIGKILL in each state: known for what it is, nothing left, the port free."""

import os
import signal
import threading
from pathlib import Path

import pytest
from tests.launch.scripted import Port, alive, launch, log_words, make_plan, record_of, wait_for

from redline.engine.launch_plan import StagePattern
from redline.launch.family import family_of
from redline.launch.server import running_servers
from redline.launch.state import ServerState
from redline.launch.stop import end_orphan, find_orphans, stop
from redline.rig.ports import can_bind

BOOTING = (
    ServerState.STARTING,
    ServerState.LOADING,
    ServerState.COMPILING,
    ServerState.ALLOCATING,
    ServerState.CAPTURING,
    ServerState.WARMING,
    ServerState.LISTENING,
)
# Goes as far as the stage HALT names and stays there, with a worker in a session of its own that hears no SIGTERM.
STAGED = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
worker = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
print("worker", worker.pid, flush=True)
for stage in "starting loading compiling allocating capturing warming listening".split():
    print("stage", stage, flush=True)
    if stage == os.environ["HALT"]:
        time.sleep(600)
"""
STAGES = tuple(StagePattern(stage=state.value, text=f"stage {state.value}") for state in BOOTING[1:])


def reach(servers: Path, port: int, state: ServerState) -> tuple[Path, int]:
    """Start a server that stays in a state; return its folder and its worker, once the supervisor knows both."""
    halt = state if state in BOOTING else ServerState.LISTENING
    folder = launch(servers, make_plan(port, STAGED, timeout_s=300, grace_s=8, stages=STAGES), HALT=halt.value)
    [[_, worker]] = wait_for(lambda: log_words(folder, "worker"))
    if state is ServerState.DRAINING:
        threading.Thread(target=stop, args=(folder, record_of(folder)), daemon=True).start()
    wait_for(lambda: record_of(folder).state is state and record_of(folder).engine_process)
    wait_for(lambda: int(worker) in family_of(folder, record_of(folder)).pids and (folder / "processes.json").exists())
    return folder, int(worker)


@pytest.mark.parametrize("victim", ["supervisor", "engine", "worker"])
@pytest.mark.parametrize("state", [*BOOTING, ServerState.DRAINING])
def test_whoever_is_killed_whenever(tmp_path: Path, free_port: Port, state: ServerState, victim: str) -> None:
    port = free_port()
    folder, worker = reach(tmp_path, port, state)
    record = record_of(folder)
    assert record.supervisor is not None
    assert record.engine_process is not None
    engine, supervisor = record.engine_process, record.supervisor
    pids = {"supervisor": supervisor.pid, "engine": engine.pid, "worker": worker}
    os.kill(pids[victim], signal.SIGKILL)
    if victim == "supervisor":
        wait_for(lambda: not engine.alive())
        for orphan in find_orphans(tmp_path):
            assert orphan.family.pids == (worker,)
            end_orphan(orphan)
    elif victim == "engine":
        wait_for(lambda: not supervisor.alive())
    else:
        assert record_of(folder).running  # what a worker's death means is the engine's to say
        stop(folder, record_of(folder), now=True)
    wait_for(lambda: not supervisor.alive())
    for pid in (engine.pid, worker):
        wait_for(lambda pid=pid: not alive(pid), 30)  # type: ignore[misc]
    ended = wait_for(lambda: (now := record_of(folder)).ended and now)
    asked_to_stop = state is ServerState.DRAINING or victim == "worker"
    if victim != "supervisor":
        assert ended.state is (ServerState.STOPPED if asked_to_stop else ServerState.FAILED)
    assert running_servers(tmp_path) == []
    assert find_orphans(tmp_path) == []
    assert can_bind("127.0.0.1", port)
