from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.settings import Layers, Sourced, load_settings, parse_bool, parse_dotenv, parse_float, parse_int


def test_the_command_line_wins_over_environment_dotenv_and_config() -> None:
    layers = Layers(
        cli={"PORT": Sourced("1", "cli:--port")},
        environ={"PORT": "2"},
        dotenv={"PORT": "3"},
        config={"port": "4"},
    )
    assert layers.get("PORT") == Sourced("1", "cli:--port")
    assert Layers(environ={"PORT": "2"}, dotenv={"PORT": "3"}).get("PORT") == Sourced("2", "env:PORT")
    assert Layers(dotenv={"PORT": "3"}, config={"port": "4"}).get("PORT") == Sourced("3", ".env:PORT")
    assert Layers(config={"port": "4"}).get("PORT") == Sourced("4", "config:PORT")
    assert Layers().get("PORT") is None


def test_an_empty_environment_value_counts_as_absent() -> None:
    assert Layers(environ={"PORT": ""}, config={"port": "4"}).get("PORT") == Sourced("4", "config:PORT")


def test_dotenv_is_read_literally() -> None:
    text = "# comment\r\nA=1\nexport B='two words'\nC=$(touch /tmp/never) `x` $HOME\nD=a=b\nE=\n\n"
    assert parse_dotenv(text, ".env") == {
        "A": "1",
        "B": "two words",
        "C": "$(touch /tmp/never) `x` $HOME",
        "D": "a=b",
        "E": "",
    }


@pytest.mark.parametrize("line", ["no equals sign", "=value", "1A=2", "with space=1"])
def test_a_malformed_dotenv_line_is_named_with_its_number(line: str) -> None:
    with pytest.raises(UsageError, match=r"\.env:2"):
        parse_dotenv(f"A=1\n{line}\n", ".env")


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text("abc $(){}#=/.,-", max_size=12)))
def test_dotenv_gives_back_what_was_written(values: dict[str, str]) -> None:
    text = "".join(f'{name}="{value}"\n' for name, value in values.items())
    assert parse_dotenv(text, ".env") == values


def test_numbers_say_which_setting_is_wrong_and_where_it_came_from() -> None:
    with pytest.raises(UsageError, match=r"PORT='abc' \(env:PORT\).*whole number"):
        parse_int(Sourced("abc", "env:PORT"), "PORT", minimum=1, maximum=65535)
    with pytest.raises(UsageError, match="between 1 and 65535"):
        parse_int(Sourced("70000", "env:PORT"), "PORT", minimum=1, maximum=65535)
    with pytest.raises(UsageError, match="a number"):
        parse_float(Sourced("warm", "env:TEMP"), "TEMP", minimum=0, maximum=5)
    assert parse_int(Sourced("262,144", "cli:--ctx"), "CTX", minimum=1, maximum=2**20).value == 262144


@pytest.mark.parametrize(("word", "value"), [("1", True), ("Yes", True), ("on", True), ("false", False), ("0", False)])
def test_booleans_take_the_usual_words(word: str, value: bool) -> None:
    assert parse_bool(Sourced(word, "env:X"), "X").value is value


def test_a_boolean_of_another_word_is_refused() -> None:
    with pytest.raises(UsageError, match="yes or no"):
        parse_bool(Sourced("maybe", "env:X"), "X")


def test_places_follow_xdg_and_model_dir(tmp_path: Path) -> None:
    environ = {"HOME": "/h", "XDG_STATE_HOME": "/s", "MODEL_DIR": "/m"}
    settings = load_settings(environ=environ, working_dir=tmp_path)
    assert settings.servers_dir == Path("/s/redline/servers")
    assert settings.models_dir == Path("/m")
    assert settings.config_file == Path("/h/.config/redline/config.toml")
    assert load_settings(environ={"HOME": "/h"}, working_dir=tmp_path).models_dir == Path(
        "/h/.local/share/redline/models"
    )


def test_a_config_file_that_is_not_toml_is_explained(tmp_path: Path) -> None:
    (tmp_path / "redline").mkdir()
    (tmp_path / "redline" / "config.toml").write_text("port = = 3\n")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_settings(environ={"HOME": "/h", "XDG_CONFIG_HOME": str(tmp_path)}, working_dir=tmp_path)
