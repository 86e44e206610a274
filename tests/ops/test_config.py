import subprocess
import sys

import pytest
from tests.conftest import Home

from redline.settings import load_settings

SECRET = "hf_" + "a" * 34


def piped(home: Home, text: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "redline", "config", *words]
    return subprocess.run(
        command, input=text, env=home.environ, cwd=home.path, capture_output=True, text=True, check=False
    )


def test_a_secret_comes_from_standard_input_and_is_never_shown(home: Home) -> None:
    done = piped(home, SECRET + "\n", "set", "HF_TOKEN")
    assert done.returncode == 0, done.stderr
    path = home.settings.config_file
    assert path.stat().st_mode & 0o777 == 0o600
    assert home.settings.secret("HF_TOKEN") == SECRET
    for words in (("config", "show"), ("config", "show", "--all"), ("config", "show", "--json"), ("doctor",)):
        shown = home.run(*words)
        assert SECRET not in shown.stdout + shown.stderr
    assert "set, not shown" in home.run("config", "show").stdout
    as_argument = home.run("config", "set", "HF_TOKEN", SECRET)
    assert as_argument.returncode == 2
    assert SECRET not in as_argument.stderr
    assert piped(home, "", "set", "HF_TOKEN").returncode == 2


def test_settings_are_checked_before_they_are_written(home: Home) -> None:
    assert home.run("config", "set", "PORT", "8300").returncode == 0
    assert home.run("config", "set", "CTX_SIZE", "4096").returncode == 0
    before = home.settings.config_file.read_text()
    for words in (("PORT", "abc"), ("PORT", "99999"), ("MAX_MODEL_LEN", "12"), ("PROT", "1"), ("PORT", ""), ("PORT",)):
        done = home.run("config", "set", *words)
        assert done.returncode == 2, words
        assert home.settings.config_file.read_text() == before
    assert "PORT" in home.run("config", "set", "PROT", "1").stderr
    rows = {row["name"]: row for row in home.json("config", "show")["settings"]}
    assert (rows["PORT"]["value"], rows["PORT"]["origin"]) == ("8300", "config:PORT")
    shown = home.json("config", "show", PORT="8400")["settings"]
    assert {row["name"]: row["origin"] for row in shown}["PORT"] == "env:PORT"
    assert home.run("config", "unset", "PORT").returncode == 0
    assert home.settings.layers.get("PORT") is None
    assert home.settings.layers.get("CTX_SIZE") is not None


def test_what_a_user_wrote_by_hand_is_kept(home: Home) -> None:
    path = home.settings.config_file
    path.parent.mkdir(parents=True)
    path.write_text('Port = 8100\nmy_own = "x"\n')
    assert home.run("config", "set", "PORT", "8300").returncode == 0
    text = path.read_text()
    assert "8100" not in text
    assert 'my_own = "x"' in text
    path.write_text("port = [1]\n")
    assert home.run("config", "show").returncode == 2
    path.unlink()


def test_path_says_where_the_file_is_before_it_is_there(home: Home) -> None:
    found = home.json("config", "path")
    assert found == {"file": str(home.settings.config_file), "exists": False}
    assert load_settings(environ=home.environ, working_dir=home.path).config_file == home.settings.config_file


@pytest.mark.parametrize("word", ["show", "set", "unset", "path"])
def test_each_has_its_help(home: Home, word: str) -> None:
    assert home.run("config", word, "--help").returncode == 0
