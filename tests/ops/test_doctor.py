"""`doctor` on machines that are shown to it: a scripted nvidia-smi, a WSL2 home, leftovers of every kind."""

import socket
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Home
from tests.launch.docker_double import make_docker

from redline.ops.doctor_host import wsl_lines
from redline.ops.health import Health
from redline.rig.types import Gpu, Rig

SMI = """#!/bin/sh
case "$*" in
  *compute_cap*) for gpu in "0 a 2000" "1 b 24000"; do set -- $gpu
    echo "$1, NVIDIA GeForce RTX 3090, GPU-$2, 24576, $3, 8.6, 580.95.05"; done;;
  *pcie*) printf '0, 4, 4, 16, 16\\n1, 4, 4, 4, 16\\n';;
  *topo*) printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\tPHB\\nGPU1\\tPHB\\t X \\n';;
esac
"""


def rows(home: Home, topic: str, **environ: str) -> list[dict[str, Any]]:
    done = home.run("doctor", "--json", **environ)
    import json

    return [row for row in json.loads(done.stdout) if row["topic"] == topic]


def test_gpus_their_memory_and_links_are_told_with_one_fix_each(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text(SMI)
    program.chmod(0o755)
    environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    assert rows(home, "driver", **environ)[0]["message"] == "580.95.05"
    first, second = rows(home, "gpu", **environ)
    assert (first["health"], second["health"]) == ("warn", "ok")
    assert "2.0 GiB of 24.0 GiB free" in first["message"]
    links = rows(home, "link", **environ)
    assert ["x16, of" in row["message"] for row in links] == [True, False]
    assert "PHB" in rows(home, "peers", **environ)[0]["message"]


def test_docker_says_that_it_is_unproven_here_and_what_is_missing(home: Home, tmp_path: Path) -> None:
    docker = make_docker(tmp_path / "docker", "")
    [row] = rows(home, "docker", **docker.environ)
    assert (row["health"], "unproven" in row["message"], "28.2.2" in row["message"]) == ("ok", True, True)
    docker.set_daemon(runs=False)
    [row] = rows(home, "docker", **docker.environ)
    assert (row["health"], row["fix"]) == ("warn", "Start it: sudo systemctl start docker.")
    [row] = rows(home, "docker", PATH=str(tmp_path))
    assert (row["health"], row["message"][:13]) == ("ok", "not installed")


def test_what_is_left_behind_and_what_is_readable_by_others_is_named(home: Home) -> None:
    settings = home.settings
    (settings.servers_dir / "older").mkdir(parents=True)
    (settings.servers_dir / "older" / "server.json").write_text("{}")
    (settings.engines_dir / "vllm-0.33.0").mkdir(parents=True)
    (settings.engines_dir / "gone.toml").write_text('kind = "llamacpp"\nversion = "b1"\nbinary = "/gone"\n')
    settings.config_file.parent.mkdir(parents=True)
    settings.config_file.write_text('hf_token = "short"\n')
    settings.config_file.chmod(0o644)
    done = home.run("doctor")
    assert done.returncode == 1
    for words in (
        "others may read it",
        f"chmod 600 {settings.config_file}",
        "HF_TOKEN (config:HF_TOKEN) does not look like one",
        "left of an installation that did not finish",
        "gone: /gone is not there",
        "redline engine remove gone",
        "older is left out: schema None",
    ):
        assert words in done.stdout, words
    assert "short" not in done.stdout


def test_a_port_that_somebody_else_holds_is_named_with_its_tier(home: Home) -> None:
    with socket.socket() as stranger:
        try:
            stranger.bind(("127.0.0.1", 8123))
        except OSError:
            pytest.skip("port 8123 is in use on this machine")
        stranger.listen()
        [row] = rows(home, "ports")
    assert row["health"] == "warn"
    assert row["message"].startswith("8123, the port of llamacpp/smollm2-135m-cpu-supermax, is held by process")


def test_wsl2_has_two_traps(tmp_path: Path) -> None:
    gpu = Gpu(index=0, name="G", uuid="GPU-a", memory_total_bytes=1, memory_free_bytes=1, compute="8.6")
    gib = 2**30
    rig = Rig(
        cpu_model="c",
        cpus=8,
        memory_total_bytes=16 * gib,
        memory_available_bytes=gib,
        kernel="x",
        wsl=True,
        gpus=(gpu,),
    )
    assert [row.health for row in wsl_lines(rig, tmp_path)] == [Health.WARN, Health.WARN]
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / ".wslconfig").write_text("[wsl2]\r\nmemory=24GB\r\n")
    assert [row.health for row in wsl_lines(rig, tmp_path)] == [Health.OK, Health.WARN]
