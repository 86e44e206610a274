"""kill -9 of each process in each phase, with the real ones; then the next command must find a clean state."""

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest
from tests.conftest import Home

from redline.launch.server import running_servers
from redline.launch.state import ServerRecord, ServerState, list_servers
from redline.rig.ports import can_bind

pytestmark = pytest.mark.real
Port = Callable[[], int]
WORKER_ENDS_WITHIN_S = 5.0


def wait_for(condition: Callable[[], object], limit_s: float = 30.0) -> object:
    """Poll until the condition holds and return its value."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    pytest.fail("the state that the test waits for never came")


def latest(home: Home) -> ServerRecord | None:
    servers = list_servers(home.settings.servers_dir)
    return servers[-1][1] if servers else None


def record_in(home: Home, *states: ServerState) -> ServerRecord | None:
    record = latest(home)
    return record if record and record.state in states else None


def test_a_worker_ends_with_its_supervisor_while_serving(real_home: Home, free_port: Port) -> None:
    port = free_port()
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0
    record = latest(real_home)
    assert record is not None
    assert record.supervisor is not None
    assert record.engine_process is not None
    engine = record.engine_process
    os.kill(record.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not engine.alive(), WORKER_ENDS_WITHIN_S)
    assert real_home.json("ps") == []
    repaired = latest(real_home)
    assert repaired is not None
    assert repaired.state is ServerState.FAILED
    assert "supervisor ended without a word" in (repaired.reason or "")
    asked = real_home.run("ask", "hello")
    assert asked.returncode == 7
    assert "supervisor ended without a word" in asked.stderr
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0


def test_a_supervisor_killed_while_loading_takes_the_worker_along(real_home: Home, free_port: Port) -> None:
    port = free_port()
    with real_home.start("up", "--port", str(port), "--no-measure") as process:
        record = wait_for(lambda: record_in(real_home, ServerState.LOADING, ServerState.WARMING))
        assert isinstance(record, ServerRecord)
        assert record.supervisor is not None
        assert record.engine_process is not None
        engine = record.engine_process
        os.kill(record.supervisor.pid, signal.SIGKILL)
        wait_for(lambda: not engine.alive(), WORKER_ENDS_WITHIN_S)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 6, out + err
    assert "did not start" in err
    assert can_bind("127.0.0.1", port)
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0


@pytest.mark.parametrize("phase", ["loading", "ready"])
def test_a_killed_worker_is_noticed_at_once(real_home: Home, free_port: Port, phase: str) -> None:
    port = free_port()
    with real_home.start("up", "--port", str(port), "--no-measure") as process:
        states = (ServerState.READY,) if phase == "ready" else (ServerState.LOADING, ServerState.WARMING)
        record = wait_for(lambda: record_in(real_home, *states))
        assert isinstance(record, ServerRecord)
        assert record.engine_process is not None
        os.kill(record.engine_process.pid, signal.SIGKILL)
        killed = time.monotonic()
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - killed < 20  # not the readiness time-out of minutes
    assert process.returncode in (1, 6), err
    found = wait_for(lambda: record_in(real_home, ServerState.FAILED), 5)  # the command and the supervisor see it both
    assert isinstance(found, ServerRecord)
    assert found.reason == "the engine ended with signal 9"
    assert real_home.json("ps") == []
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0


def test_a_killed_command_leaves_a_server_that_is_found(real_home: Home, free_port: Port) -> None:
    port = free_port()
    with real_home.start("up", "--port", str(port)) as process:
        wait_for(lambda: record_in(real_home, ServerState.STARTING, ServerState.LOADING))
        process.kill()
        process.communicate()
    wait_for(lambda: [row["state"] for row in real_home.json("ps")] == ["ready"])
    assert real_home.json("ps")[0]["url"].endswith(str(port))
    assert real_home.run("ask", "hello").returncode == 0
    [run] = real_home.json("runs")
    assert run["outcome"] == "cut off"
    assert len(real_home.json("down")) == 1


@pytest.mark.parametrize("phase", ["starting", "checking", "measuring"])
def test_ctrl_c_leaves_a_record_and_no_orphan(real_home: Home, free_port: Port, phase: str) -> None:
    with real_home.start("up", "--port", str(free_port())) as process:
        if phase == "starting":
            wait_for(lambda: record_in(real_home, ServerState.STARTING, ServerState.LOADING, ServerState.WARMING))
        else:
            assert process.stdout is not None
            word = "basic answer" if phase == "checking" else "measuring"
            for line in process.stdout:
                if word in line:
                    break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in err
    [run] = real_home.json("runs")
    assert run["outcome"] == "interrupted"
    servers = running_servers(real_home.settings.servers_dir)
    # A server that was still starting is stopped; one that serves goes on and is found.
    assert len(servers) == (0 if phase == "starting" else 1)
    if phase == "starting":
        record = latest(real_home)
        assert record is not None
        assert record.engine_process is None or not psutil.pid_exists(record.engine_process.pid)


def test_sigterm_ends_like_ctrl_c_with_143(real_home: Home, free_port: Port) -> None:
    with real_home.start("up", "--port", str(free_port())) as process:
        wait_for(lambda: record_in(real_home, ServerState.STARTING, ServerState.LOADING, ServerState.WARMING))
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert running_servers(real_home.settings.servers_dir) == []


def test_a_state_left_by_a_power_cut_is_repaired(real_home: Home, free_port: Port) -> None:
    port = free_port()
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0
    [(folder, record)] = list_servers(real_home.settings.servers_dir)
    assert real_home.run("down").returncode == 0
    # What a machine that lost its power leaves: a state that says ready, of processes of an earlier boot.
    text = (folder / "server.json").read_text()
    assert record.supervisor is not None
    state = text.replace('"stopped"', '"ready"').replace(record.supervisor.boot_id, "another-boot")
    (folder / "server.json").write_text(state)
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"time": 1, "sta')
    assert real_home.json("ps") == []
    asked = real_home.run("ask", "hello")
    assert asked.returncode == 7
    assert "the machine was restarted" in asked.stderr
    assert real_home.run("up", "--port", str(port), "--no-measure").returncode == 0
