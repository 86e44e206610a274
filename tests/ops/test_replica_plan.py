"""What several copies would be, and what is refused before anything is touched."""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redline.catalog.types import Catalog
from redline.engine.home import EngineHome, save_home
from redline.errors import MissingError, UsageError
from redline.guard.finding import Severity
from redline.ops.prepare import UpRequest
from redline.ops.replica_plan import members_at_home, need_router, prepare_group
from redline.settings import Settings, Sourced, load_settings


def settings_of(tmp_path: Path, **given: str) -> Settings:
    cli = {name: Sourced(value, f"cli:--{name.lower()}") for name, value in given.items()}
    return load_settings(cli, environ={"HOME": str(tmp_path)}, working_dir=tmp_path)


def test_copies_share_the_machine_and_take_the_next_free_ports(
    catalog: Catalog, tmp_path: Path, free_port: Callable[[], int]
) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        prepared = prepare_group(catalog, settings_of(tmp_path, PORT=str(port)), UpRequest(), 3)
    ports = [plan.port for plan in prepared.members]
    assert port + 1 not in ports
    assert ports == sorted(set(ports))
    assert prepared.router.port == port
    assert [f"http://127.0.0.1:{number}" for number in ports] == [plan.url for plan in prepared.members]
    assert [url for url in prepared.router.argv if url.startswith("http://")] == [plan.url for plan in prepared.members]
    threads = {plan.argv[plan.argv.index("--threads") + 1] for plan in prepared.members}
    assert threads == {str(max(1, prepared.rig.cpus // 3))}
    metrics = prepared.router.argv[prepared.router.argv.index("--prometheus-port") + 1]
    assert int(metrics) not in (*ports, port)
    assert not [finding for finding in prepared.findings if finding.severity is Severity.REFUSE]


def test_a_router_for_everyone_is_refused(catalog: Catalog, tmp_path: Path, free_port: Callable[[], int]) -> None:
    settings = settings_of(tmp_path, BIND_HOST="0.0.0.0", PORT=str(free_port()))
    refused = {
        item.rule_id for item in prepare_group(catalog, settings, UpRequest(), 2).findings if item.severity == "refuse"
    }
    assert "router-open" in refused


HOLD = """
import socket, sys
held = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("held", flush=True)
input()
"""


def test_a_held_port_is_refused(catalog: Catalog, tmp_path: Path, free_port: Callable[[], int]) -> None:
    port = free_port()
    argv = [sys.executable, "-c", HOLD, str(port)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        findings = prepare_group(catalog, settings_of(tmp_path, PORT=str(port)), UpRequest(), 2).findings
        other.communicate("\n", timeout=30)
    assert "port-taken" in {finding.rule_id for finding in findings if finding.severity is Severity.REFUSE}


ON_GPU = "vllm/smollm2-135m-single-max"
HOME = EngineHome(
    name="vllm-0.33.0",
    kind="vllm",
    version="0.33.0",
    interpreter=sys.executable,
    environment={"VLLM_CACHE_ROOT": "/cache"},
)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make this machine show as many H200s, by a driver's tool of its own."""

    def show(count: int) -> None:
        rows = [f"{n}, NVIDIA H200, GPU-{n}, 143771, 143000, 9.0, 580.159.04" for n in range(count)]
        tool = tmp_path / "bin" / "nvidia-smi"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)

    return show


def test_copies_on_gpus_have_each_its_own_and_its_own_cache(
    catalog: Catalog, tmp_path: Path, gpus: Callable[[int], None], free_port: Callable[[], int]
) -> None:
    gpus(2)
    settings = settings_of(tmp_path, PORT=str(free_port()))
    save_home(settings.engines_dir, HOME)
    request = UpRequest(slug=ON_GPU)
    prepared = members_at_home(settings, request, prepare_group(catalog, settings, request, 2))
    assert [plan.argv[plan.argv.index("--device-ids") + 1] for plan in prepared.members] == ["0", "1"]
    assert [plan.gpus for plan in prepared.members] == [(0,), (1,)]
    assert {plan.argv[0] for plan in prepared.members} == {sys.executable}
    roots = {plan.env["VLLM_CACHE_ROOT"] for plan in prepared.members}
    assert roots == {"/cache/gpus-0", "/cache/gpus-1"}
    assert not [finding for finding in prepared.findings if finding.severity is Severity.REFUSE]


def test_more_copies_than_gpus_are_refused(
    catalog: Catalog, tmp_path: Path, gpus: Callable[[int], None], free_port: Callable[[], int]
) -> None:
    gpus(1)
    prepared = prepare_group(catalog, settings_of(tmp_path, PORT=str(free_port())), UpRequest(slug=ON_GPU), 2)
    refused = [finding for finding in prepared.findings if finding.severity is Severity.REFUSE]
    assert "2 copies" in next(item.message for item in refused if item.rule_id == "gpu-count")


def test_named_gpus_are_shared_out_in_their_order(
    catalog: Catalog, tmp_path: Path, gpus: Callable[[int], None], free_port: Callable[[], int]
) -> None:
    gpus(4)
    named = settings_of(tmp_path, PORT=str(free_port()), GPUS="3,1")
    assert [plan.gpus for plan in prepare_group(catalog, named, UpRequest(slug=ON_GPU), 2).members] == [(3,), (1,)]
    with pytest.raises(UsageError, match="take 3 GPUs"):
        prepare_group(catalog, named, UpRequest(slug=ON_GPU), 3)


def test_copies_of_a_llamacpp_tier_on_gpus_are_rendered_not_started(catalog: Catalog, tmp_path: Path) -> None:
    slug = next(name for name, tier in catalog.tiers.items() if name.startswith("llamacpp/") and "cpu" not in name)
    with pytest.raises(UsageError, match="nobody has run them") as caught:
        prepare_group(catalog, settings_of(tmp_path), UpRequest(slug=slug), 2)
    assert "--as replicas --replicas 2" in (caught.value.next_step or "")


def test_a_missing_router_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingError) as caught:
        need_router()
    assert "pip install vllm-router==0.1.17" in (caught.value.next_step or "")
