"""`up`, `restart`, `ps` and `down` with engines that are not redline's own: real commands, processes and sockets."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import Home
from tests.launch.docker_double import make_docker
from tests.launch.scripted import alive, wait_for
from tests.ops.tiny import ANYWAY, FAST, MAX, furnish, llama_server

from redline.launch.state import ServerRecord, ServerState, list_servers
from redline.rig.ports import can_bind

Port = Callable[[], int]
QUICK = (*ANYWAY, "--no-measure")


@dataclass(frozen=True)
class Rig:
    home: Home
    fast: int
    max: int

    def up(self, slug: str, *more: str, **environ: str) -> tuple[int, str, str]:
        done = self.home.run("up", slug, *QUICK, *more, **environ)
        return done.returncode, done.stdout, done.stderr

    def ready(self) -> list[str]:
        return [row["slug"] for row in self.home.json("ps") if row["state"] == "ready"]

    def last(self) -> ServerRecord:
        return list_servers(self.home.settings.servers_dir)[-1][1]


@pytest.fixture
def rig(home: Home, free_port: Port) -> Rig:
    made = Rig(home, free_port(), free_port())
    furnish(home, made.fast, made.max)
    return made


def test_without_an_engine_home_it_says_what_to_type_and_touches_nothing(rig: Rig) -> None:
    code, _, err = rig.up(FAST)
    assert code == 7
    assert "No llama.cpp b11434 is set up for redline" in err
    assert "redline engine add --binary llama-server" in err
    assert list_servers(rig.home.settings.servers_dir) == []
    assert rig.up(FAST, "--engine-home", "nowhere")[0] == 7


def test_a_tier_replaces_what_holds_its_gpu_and_restart_brings_the_first_back(rig: Rig) -> None:
    llama_server(rig.home)
    code, out, err = rig.up(FAST)
    assert code == 0, out + err
    assert "4 of 4 applicable passed" in out
    [row] = rig.home.json("ps")
    assert (row["slug"], row["state"], row["form"]) == (FAST, "ready", "native")
    assert row["memory_bytes"] > 2**20
    assert "already running" in rig.up(FAST)[1]
    code, out, err = rig.up(MAX)
    assert code == 0, out + err
    assert f"stopping {FAST} on port {rig.fast}: it holds GPU 0" in out
    assert rig.ready() == [MAX]
    assert can_bind("127.0.0.1", rig.fast)
    answer = rig.home.json("restart", "tiny-single-fast")
    assert answer["slug"] == FAST
    assert [proof["slug"] for proof in answer["stopped"]] == [MAX]
    code, out, err = rig.up(MAX, "--beside")
    assert code == 0, out + err
    assert rig.ready() == [FAST, MAX]
    proofs = rig.home.json("down", "--all")
    assert [proof["port_free"] for proof in proofs] == [True, True]
    assert rig.home.json("ps") == []


def test_a_switch_that_fails_offers_the_old_server_back_by_an_exact_command(rig: Rig) -> None:
    llama_server(rig.home)
    llama_server(rig.home, "port-stolen", "z-broken")
    assert rig.up(FAST)[0] == 0
    first = rig.last().server_id
    code, out, err = rig.up(MAX, "--engine-home", "z-broken")
    assert code == 6, out + err
    assert f"`redline restart {first}`" in err
    assert rig.home.json("ps") == []
    assert rig.home.json("restart", first)["slug"] == FAST
    code, out, err = rig.up(MAX, "--engine-home", "z-broken", "--rollback")
    assert code == 6, out + err
    assert f"starting {FAST} again as it was" in out
    assert f"{FAST} is back at http://127.0.0.1:{rig.fast}" in err
    assert rig.ready() == [FAST]
    assert [run["outcome"] for run in rig.home.json("runs")] == ["failed", "failed", "complete"]


def test_what_a_guard_refuses_stops_nothing(rig: Rig) -> None:
    llama_server(rig.home)
    assert rig.up(FAST)[0] == 0
    code, _, err = rig.up(MAX, "--ctx", "16384")
    assert code == 5
    assert "nothing was stopped or started" in err
    assert rig.up(MAX, "--via", "embedded")[0] == 2
    assert rig.ready() == [FAST]


def forking(home: Home) -> None:
    """A llama-server whose first process only starts the engine: what is left when it is killed."""
    program = llama_server(home)
    text = program.read_text().replace("exec " + sys.executable, sys.executable)
    program.write_text(text + "wait\n")


def test_an_engine_that_outlived_its_supervisor_is_named_by_ps_and_ended_by_down(rig: Rig) -> None:
    forking(rig.home)
    assert rig.up(FAST)[0] == 0
    record = rig.last()
    assert record.supervisor is not None
    record.supervisor.send(signal.SIGKILL)
    wait_for(lambda: not record.supervised)
    [row] = wait_for(lambda: [row for row in rig.home.json("ps") if row["state"] == "outlived"])
    assert row["slug"] == FAST
    assert alive(row["pid"])
    assert not can_bind("127.0.0.1", rig.fast)
    text = rig.home.run("ps").stdout
    assert f"down {row['server_id']}" in text
    [proof] = rig.home.json("down")
    assert str(row["pid"]) in proof["outlived"]
    assert proof["port_free"]
    assert not alive(row["pid"])
    assert rig.home.json("ps") == []


def test_up_ends_an_engine_that_outlived_its_supervisor_after_naming_it(rig: Rig) -> None:
    forking(rig.home)
    assert rig.up(FAST)[0] == 0
    record = rig.last()
    assert record.supervisor is not None
    record.supervisor.send(signal.SIGKILL)
    wait_for(lambda: not record.supervised)
    code, out, err = rig.up(FAST)
    assert code == 0, out + err
    assert f"{FAST} left process" in out
    assert "its supervisor ended without a word" in out
    assert rig.ready() == [FAST]


PLAYED = (
    "import os, sys\nos.execv(sys.executable, [sys.executable, '-P', '-m', 'redline.fake', 'healthy-text-only', "
    "'--dialect', 'llamacpp', '--model', 'tiny', '--port', 'PORT'])"
)


def test_the_docker_form_is_served_replaced_and_ended_like_any_other(rig: Rig, tmp_path: Path) -> None:
    docker = make_docker(tmp_path / "docker", PLAYED)
    code, out, err = rig.up(FAST, "--via", "docker", **docker.environ)
    assert code == 0, out + err
    assert len(docker.calls("pull")) == 1
    [row] = rig.home.json("ps", **docker.environ)
    assert (row["form"], row["state"]) == ("docker", "ready")
    assert row["container"] == docker.containers()[0]["Id"]
    code, out, err = rig.up(MAX, "--via", "docker", **docker.environ)
    assert code == 0, out + err
    assert "it holds GPU 0" in out
    assert len(docker.containers()) == 1
    assert rig.home.json("restart", **docker.environ)["slug"] == MAX
    rig.home.json("down", **docker.environ)
    assert docker.containers() == []


def test_a_docker_that_is_not_there_is_said_before_anything_is_stopped(rig: Rig, tmp_path: Path) -> None:
    llama_server(rig.home)
    docker = make_docker(tmp_path / "docker", PLAYED)
    docker.set_daemon(runs=False)
    assert rig.up(FAST)[0] == 0
    code, _, err = rig.up(MAX, "--via", "docker", **docker.environ)
    assert code == 7
    assert "The docker daemon does not run" in err
    assert "systemctl start docker" in err
    assert rig.ready() == [FAST]
    assert rig.last().reason == "not started: The docker daemon does not run."


def test_a_command_killed_while_it_fetches_leaves_a_record_that_says_so(rig: Rig, tmp_path: Path) -> None:
    docker = make_docker(tmp_path / "docker", PLAYED)
    slow = docker.folder / "bin" / "docker"
    slow.write_text(slow.read_text().replace("exec", '[ "$1" = pull ] && sleep 60\nexec'))
    with rig.home.start("up", FAST, *QUICK, "--via", "docker", **docker.environ) as process:
        fetching = wait_for(lambda: [row for row in rig.home.json("ps") if row["state"] == "fetching"], 60)
        assert fetching[0]["slug"] == FAST
        children = [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        process.kill()
        process.communicate()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    assert rig.home.json("ps") == []
    assert rig.last().state is ServerState.FAILED
    assert "the command that prepared it ended without a word" in (rig.last().reason or "")
