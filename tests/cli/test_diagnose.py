"""The command, as a process: files, standard input, bytes that are no text, servers that never were."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

LOGS = Path(__file__).parents[1] / "engine" / "logs"


def _run(tmp_path: Path, *arguments: str, text: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "redline", "diagnose", *arguments],
        input=text,
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["kv-cache-too-small", "gguf-not-found", "healthy-llamacpp"])
def test_what_it_prints(tmp_path: Path, name: str, snapshot: SnapshotAssertion) -> None:
    done = _run(tmp_path, str(LOGS / f"{name}.log"))
    assert done.returncode == 0
    assert done.stdout.decode() == snapshot


def test_unknown_trouble_ends_with_3(tmp_path: Path) -> None:
    done = _run(tmp_path, "-", text=b"RuntimeError: the moon is full\n")
    assert done.returncode == 3
    assert b"the moon is full" in done.stdout


def test_json_of_standard_input(tmp_path: Path) -> None:
    done = _run(tmp_path, "-", "--engine", "vllm", "--json", text=(LOGS / "port-taken.log").read_bytes())
    found = json.loads(done.stdout)
    assert (found["verdict"], found["signature_id"], found["engine"]) == ("known", "port-taken", "vllm")


def test_bytes_that_are_no_text_and_lines_without_end(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    words = b"OSError: [Errno 98] Address already in use"
    log.write_bytes(b"\xff\xfe\x00\xc3\x28\n" + b"x" * 10_000_000 + b"\n" + words + b"\n" + b"\xf0\x9f" * 1000)
    done = _run(tmp_path, str(log), "--json")
    found = json.loads(done.stdout)
    assert (found["signature_id"], found["line_number"]) == ("port-taken", 3)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    done = _run(tmp_path, "nowhere.log")
    assert done.returncode == 7
    assert b"nowhere.log cannot be read: No such file or directory." in done.stderr


def test_the_known_faults_can_be_listed(tmp_path: Path) -> None:
    text = _run(tmp_path, "--list", "--engine", "llamacpp").stdout.decode()
    assert "gguf-not-found " in text
    assert "kv-cache-too-small" not in text
    rows = json.loads(_run(tmp_path, "--list", "--json").stdout)
    assert {row["kind"] for row in rows} == {"engine-source", "captured", "issue", "unproven"}


def test_without_a_log_and_without_a_server(tmp_path: Path) -> None:
    assert _run(tmp_path).returncode == 7
