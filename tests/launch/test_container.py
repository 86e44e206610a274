"""The docker form, driven through a scripted `docker` on PATH; none of this was seen with a real daemon."""

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.launch.docker_double import DockerDouble, make_docker
from tests.launch.scripted import GOOD, Port, boot, launch, log_words, make_plan, record_of, wait_for

from redline.engine.launch_plan import Container, LaunchPlan, Mount
from redline.errors import MissingError
from redline.launch.container import run_arguments
from redline.launch.docker import docker_info, has_image, pull_image
from redline.launch.state import ServerState, read_history
from redline.launch.stop import end_orphan, find_orphans, stop


def docker_plan(port: int, **changes: Any) -> LaunchPlan:
    container = Container(image="engine:1", port=8000, gpu_count=2, shm_gib=16, volumes={"cache": "/root/.cache"})
    return make_plan(
        port,
        form="docker",
        argv=("vllm", "serve", "/models/m", "--port", "8000"),
        container=container,
        mounts=(Mount(source="/srv/models", target="/models"),),
        env={"A": "b c"},
        secret_env=("VLLM_API_KEY",),
        secret_aliases={"VLLM_API_KEY": "REDLINE_API_KEY"},
        **changes,
    )


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DockerDouble:
    double = make_docker(tmp_path / "docker", GOOD)
    for name, value in double.environ.items():
        monkeypatch.setenv(name, value)
    return double


def test_a_container_is_started_without_a_policy_and_promoted_once_ready(
    tmp_path: Path, free_port: Port, docker: DockerDouble
) -> None:
    port = free_port()
    folder, record = boot(tmp_path / "servers", docker_plan(port), REDLINE_API_KEY="very-secret")
    assert record.state is ServerState.READY
    [call] = docker.calls("run")
    assert call[:4] == ["run", "--detach", f"--name=redline-{record.server_id}", "--restart=no"]
    assert call[-4:] == ["engine:1", "/models/m", "--port", "8000"]
    assert f"--publish=127.0.0.1:{port}:8000" in call
    assert "--gpus=2" in call
    assert "--env=A=b c" in call
    assert "--env=VLLM_API_KEY" in call
    assert "--volume=/srv/models:/models:ro" in call
    assert "very-secret" not in (docker.folder / "calls.jsonl").read_text()
    wait_for(lambda: docker.containers()[0]["Policy"] == "unless-stopped")
    wait_for(lambda: log_words(folder, "listening"))
    proof = stop(folder, record)
    assert proof.port_free
    assert docker.containers() == []
    assert record_of(folder).ended


def test_a_container_that_dies_in_its_boot_is_known_at_once(
    tmp_path: Path, free_port: Port, docker: DockerDouble
) -> None:
    (docker.folder / "engine.py").write_text("print('loading weights'); raise SystemExit(7)")
    folder, record = boot(tmp_path / "servers", docker_plan(free_port(), timeout_s=300))
    assert record.state is ServerState.FAILED
    assert record.reason == "the engine ended with exit status 7"
    assert "loading weights" in (folder / "engine.log").read_text()
    assert docker.containers() == []


def test_a_crash_loop_after_ready_is_seen_by_the_restart_count(
    tmp_path: Path, free_port: Port, docker: DockerDouble
) -> None:
    folder, record = boot(tmp_path / "servers", docker_plan(free_port()))
    wait_for(lambda: docker.waits() and docker.containers()[0]["Policy"] == "unless-stopped")
    (docker.folder / "engine.py").write_text("print('engine build 1'); raise SystemExit(1)")
    os.killpg(docker.containers()[0]["Pid"], signal.SIGKILL)
    wait_for(lambda: record_of(folder).restarts > 0)
    states = [event["state"] for event in read_history(folder)]
    assert "ready" in states
    ended = wait_for(lambda: record_of(folder) if record_of(folder).state is ServerState.FAILED else None)
    assert "never stayed up (a crash loop)" in ended.reason
    wait_for(lambda: docker.containers() == [])
    assert record.state is ServerState.READY


def test_a_container_that_crashes_once_is_ready_again(tmp_path: Path, free_port: Port, docker: DockerDouble) -> None:
    folder, record = boot(tmp_path / "servers", docker_plan(free_port()))
    wait_for(lambda: docker.waits() and docker.containers()[0]["Policy"] == "unless-stopped")
    os.killpg(docker.containers()[0]["Pid"], signal.SIGKILL)
    wait_for(lambda: record_of(folder).restarts == 1 and record_of(folder).state is ServerState.READY)
    texts = [event["text"] for event in read_history(folder)]
    assert "docker started it again (restart 1)" in texts
    stop(folder, record)


def test_a_container_that_outlived_its_supervisor_is_found_by_its_label(
    tmp_path: Path, free_port: Port, docker: DockerDouble
) -> None:
    servers = tmp_path / "servers"
    folder, record = boot(servers, docker_plan(free_port()))
    assert record.supervisor is not None
    record.supervisor.send(signal.SIGKILL)
    wait_for(lambda: not record.supervised)
    docker.set_daemon(runs=False)
    assert find_orphans(servers) == []  # docker does not answer: nothing is known, and nothing is forgotten
    assert not record_of(folder).ended
    docker.set_daemon(runs=True)
    [orphan] = find_orphans(servers)
    assert orphan.describe() == f"container {docker.containers()[0]['Id'][:12]}"
    assert end_orphan(orphan).port_free
    assert docker.containers() == []
    assert find_orphans(servers) == []


def test_a_daemon_that_is_restarted_takes_no_server_along(
    tmp_path: Path, free_port: Port, docker: DockerDouble
) -> None:
    folder, record = boot(tmp_path / "servers", docker_plan(free_port()))
    wait_for(docker.waits)
    docker.set_daemon(runs=False)
    assert record.supervisor is not None
    for child in psutil.Process(record.supervisor.pid).children(recursive=True):
        if "wait" in child.cmdline():
            child.kill()
    wait_for(lambda: len(docker.calls("container")) >= 2)
    docker.set_daemon(runs=True)
    wait_for(lambda: docker.waits() == 2)
    assert record_of(folder).state is ServerState.READY
    assert record_of(folder).restarts == 0
    stop(folder, record)


@pytest.mark.parametrize("state", ["absent", "stopped"])
def test_a_runtime_that_is_absent_or_stopped_is_named(
    tmp_path: Path, free_port: Port, docker: DockerDouble, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if state == "absent":
        monkeypatch.setenv("PATH", str(tmp_path / "nothing-here"))
    else:
        docker.set_daemon(runs=False)
    words = {"absent": "Docker is not installed.", "stopped": "The docker daemon does not run."}[state]
    with pytest.raises(MissingError, match=words) as found:
        docker_info()
    assert found.value.next_step
    folder = launch(tmp_path / "servers", docker_plan(free_port()))
    wait_for(lambda: not record_of(folder).running)
    assert record_of(folder).reason == f"the container was not started: {words}"


def test_images_are_looked_for_and_fetched(docker: DockerDouble) -> None:
    assert not has_image("engine:1")
    assert "Status: Downloaded newer image for engine:1" in list(pull_image("engine:1"))
    assert has_image("engine:1")
    with pytest.raises(MissingError, match="pull access denied"):
        list(pull_image("refused:1"))


def test_chosen_gpus_and_addresses_are_spelt_as_docker_takes_them() -> None:
    plan = docker_plan(8000, host="::1")
    assert plan.container is not None
    container = Container(image="e", port=8000, gpu_count=2, gpus=("0", "3"), ipc_host=True, entrypoint=("/app/x",))
    words = run_arguments(make_plan(8000, form="docker", host="::1", container=container), "s", {})
    assert '--gpus="device=0,3"' in words
    assert "--ipc=host" in words
    assert "--publish=[::1]:8000:8000" in words
    assert "--entrypoint=/app/x" in words
