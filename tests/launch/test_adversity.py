"""A full disk, unreadable output, a clock that jumps: the server goes on, and what is said of it stays true."""

import resource
import shutil
import signal
from pathlib import Path

import psutil
import pytest
from tests.launch.scripted import GOOD, Port, boot, launch, make_plan, record_of, wait_for

from redline.launch.boot_times import expectation
from redline.launch.logfile import tail
from redline.launch.state import ServerState, event_seconds, read_history
from redline.launch.stop import stop

NO_LIMIT = resource.RLIM_INFINITY
CHATTY = GOOD.replace(
    "server.serve_forever()",
    """
def chat():
    for number in range(6000):
        print("x" * 1000, flush=True)
        open(os.environ["COUNT"], "w").write(str(number))
        time.sleep(0.01)
threading.Thread(target=chat, daemon=True).start()
server.serve_forever()
""",
)


def fill_the_disk(supervisor: psutil.Process, count: Path) -> None:
    """Let no file of the supervisor grow any more, which is what a full disk does; return when output was lost."""
    supervisor.rlimit(psutil.RLIMIT_FSIZE, (0, NO_LIMIT))
    before = int(count.read_text() or 0)
    wait_for(lambda: int(count.read_text() or 0) > before + 20)


def test_a_full_disk_ends_no_server_and_is_written_up_afterwards(tmp_path: Path, free_port: Port) -> None:
    count = tmp_path / "count"
    folder, record = boot(tmp_path / "servers", make_plan(free_port(), CHATTY), COUNT=str(count))
    assert record.supervisor is not None
    assert record.engine_process is not None
    engine, supervisor = record.engine_process, psutil.Process(record.supervisor.pid)
    fill_the_disk(supervisor, count)
    supervisor.send_signal(signal.SIGTERM)
    wait_for(lambda: not engine.alive())
    assert record_of(folder).state is ServerState.READY  # it could not say better
    supervisor.rlimit(psutil.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
    wait_for(lambda: record_of(folder).state is ServerState.STOPPED)
    ended = record_of(folder)
    assert ended.ended
    assert ended.lost_log_bytes > 10_000
    assert [event["state"] for event in read_history(folder)][-2:] == ["draining", "stopped"]


def test_log_lines_lost_to_a_full_disk_are_owned_up_to(tmp_path: Path, free_port: Port) -> None:
    count = tmp_path / "count"
    folder, record = boot(tmp_path / "servers", make_plan(free_port(), CHATTY), COUNT=str(count))
    assert record.supervisor is not None
    supervisor = psutil.Process(record.supervisor.pid)
    fill_the_disk(supervisor, count)
    supervisor.rlimit(psutil.RLIMIT_FSIZE, (NO_LIMIT, NO_LIMIT))
    wait_for(lambda: b"bytes of this log could not be written" in (folder / "engine.log").read_bytes())
    assert record_of(folder).state is ServerState.READY
    stop(folder, record)


UNREADABLE = GOOD.replace(
    'print("loading weights", flush=True)',
    'out = sys.stdout.buffer; out.write(b"\\xff\\xfe\\x00 no text\\n"); out.write(b"y" * 10_000_000 + b"\\n")\n'
    'print("loading weights", flush=True); print("\\r".join(f"shards: {n:3d}% Completed" for n in range(0, 101, 10)))',
)


def test_invalid_bytes_and_a_line_of_ten_megabytes_hide_nothing(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port(), UNREADABLE))
    assert record.state is ServerState.READY
    assert "loading" in [event["state"] for event in read_history(folder)]
    shown = tail(folder / "engine.log", 100)
    assert "listening" in shown
    assert all(len(line) < 2100 for line in shown)
    assert record.supervisor is not None
    assert psutil.Process(record.supervisor.pid).memory_info().rss < 60 * 2**20
    stop(folder, record)


JUMPING_CLOCK = """
import os, time
real = time.time
def jumped():
    try:
        return real() + float(open(os.environ["CLOCK_FILE"]).read() or 0)
    except (OSError, ValueError):
        return real()
time.time = jumped
"""


@pytest.mark.parametrize("jump_s", [-86_400.0, 86_400.0])
def test_a_clock_that_jumps_changes_no_duration_and_no_verdict(tmp_path: Path, free_port: Port, jump_s: float) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(JUMPING_CLOCK)
    clock, servers = tmp_path / "clock", tmp_path / "servers"
    plan = make_plan(free_port())
    folder = launch(servers, plan, PYTHONPATH=str(tmp_path / "site"), CLOCK_FILE=str(clock), LOAD_S="1")
    wait_for(lambda: record_of(folder).state is ServerState.LOADING)
    clock.write_text(str(jump_s))
    wait_for(lambda: record_of(folder).state is ServerState.READY)
    record, history = record_of(folder), read_history(folder)
    assert abs(history[-1]["time"] - record.created_at) > 80_000  # the wall clock did jump
    seconds = [event_seconds(record, event) for event in history]
    assert seconds == sorted(seconds)
    assert seconds[-1] < 60
    assert record.ready_s is not None
    assert 1.0 <= record.ready_s < 60
    expected = expectation(servers, plan.slug, plan.engine_version, plan.form)
    assert expected is not None
    assert 1.0 <= expected.stages["loading"] < 60
    stop(folder, record)
    again, _ = boot(servers, plan)
    assert record_of(again).sequence == record.sequence + 1
    stop(again, record_of(again))


def test_the_folder_of_a_server_may_vanish_under_its_supervisor(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()))
    shutil.rmtree(folder)
    assert record.supervisor is not None
    assert record.engine_process is not None
    engine = record.engine_process
    record.supervisor.send(signal.SIGINT)
    wait_for(lambda: not engine.alive())
    record.supervisor.send(signal.SIGINT)
    wait_for(lambda: not record.supervised)
