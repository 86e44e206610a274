"""Units: what systemd would read back from ExecStart is the very command, and its own checker finds no fault."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.engine.launch_plan import LaunchPlan
from redline.launch.render.systemd import render_systemd


def plan(*words: str, **env: str) -> LaunchPlan:
    return LaunchPlan(
        slug="vllm/m-dual-fast",
        engine="vllm",
        engine_version="0.33.0",
        form="native",
        argv=("/usr/bin/env", "vllm", *words),
        host="127.0.0.1",
        port=8000,
        served_model="m",
        env=env,
        secret_env=("VLLM_API_KEY",),
    )


def read_back(unit: str) -> list[str]:
    """Return the words of ExecStart as systemd.service(5) reads them: quotes, C escapes, `%%` and `$$`."""
    text = unit[unit.index("ExecStart=") + 10 : unit.index("\nRestart=")].replace(" \\\n  ", " ")
    words, word, inside, position = [], "", False, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
            word += {"n": "\n", "t": "\t"}.get(text[position], text[position])
        elif letter == '"':
            inside = not inside
            if not inside:
                words.append(word)
                word = ""
        elif letter == " " and not inside:
            if word:
                words.append(word)
            word = ""
        else:
            word += letter
        position += 1
    return [item.replace("%%", "%").replace("$$", "$") for item in ([*words, word] if word else words)]


TEXT = st.text(st.sampled_from("ab1-_=:,./@+ {}\"'\\$%\n\t;#&|<>()*?~"), min_size=1, max_size=12)


@given(st.lists(TEXT, max_size=5))
def test_the_command_survives_quoting(words: list[str]) -> None:
    made = plan(*words)
    assert read_back(render_systemd(made)) == list(made.argv)


def test_no_secret_stands_in_a_unit() -> None:
    unit = render_systemd(plan())
    assert "EnvironmentFile=-%h/.config/redline/server.env" in unit
    assert "VLLM_API_KEY=" not in unit


def verify(path: Path) -> str:
    """Return what systemd's own checker says of a unit, in the folder of a user manager of its own."""
    environ = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(path.parent), "HOME": str(path.parent)}
    argv = ["systemd-analyze", "--user", "verify", str(path)]
    return subprocess.run(argv, check=False, capture_output=True, text=True, env=environ).stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemds_own_checker_finds_no_fault(tmp_path: Path) -> None:
    unit = render_systemd(plan("--x", '{"a":"50 %"}', "$HOME", NAME="a b"))
    good, bad = tmp_path / "good.service", tmp_path / "bad.service"
    good.write_text(unit)
    assert verify(good) == ""
    bad.write_text(unit.replace("ExecStart=/usr/bin/env", "ExecStart=relative/program"))
    assert "bad.service" in verify(bad)
