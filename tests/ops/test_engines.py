"""Engine homes: made by the real pip in a real environment, adopted from an interpreter, named as a program."""

import json
import stat
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Home

from redline.engine.home import EngineHome, at_home, load_homes, save_home
from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.ops.engines import NoEngineHomeError, choose_home


def write_wheel(folder: Path, version: str) -> None:
    """Write a wheel of that name which holds nothing but its name and version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"vllm-{version}.dist-info"
    with zipfile.ZipFile(folder / f"vllm-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("vllm/__init__.py", f"__version__ = '{version}'\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


def test_install_makes_an_environment_of_its_own_and_a_home(home: Home, tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "0.33.0")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels"), "PATH": "/usr/bin:/bin"}
    made = home.json("engine", "install", "vllm==0.33.0", **offline)
    assert (made["kind"], made["version"], made["managed"]) == ("vllm", "0.33.0", True)
    assert Path(made["interpreter"]).is_relative_to(home.settings.engines_dir / "vllm-0.33.0")
    assert Path(made["interpreter"]).parent.parent != Path(sys.prefix)
    [row] = home.json("engine", "list")
    assert (row["name"], row["problem"]) == ("vllm-0.33.0", None)
    failed = home.run("engine", "install", "vllm==0.34.0", **offline)
    assert failed.returncode == 7
    assert "vllm==0.34.0" in failed.stderr
    assert not (home.settings.engines_dir / "vllm-0.34.0").exists()
    assert home.run("engine", "remove", "vllm-0.33.0").returncode == 0
    assert not (home.settings.engines_dir / "vllm-0.33.0").exists()
    assert home.json("engine", "list") == []


@pytest.mark.parametrize("pin", ["vllm", "vllm>=0.33", "torch==2.0", "vllm==0.33.0; rm"])
def test_only_a_pinned_engine_is_installed(home: Home, pin: str) -> None:
    done = home.run("engine", "install", pin)
    assert done.returncode == 2
    assert "vllm==0.33.0" in done.stderr


def test_an_interpreter_is_adopted_with_the_folder_its_engine_lies_in(home: Home, tmp_path: Path) -> None:
    info = tmp_path / "extra" / "vllm-0.33.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.1\n")
    bare = home.run("engine", "add", "--python", sys.executable)
    assert bare.returncode == 7
    assert "has no vLLM" in bare.stderr
    extra = ("--path", str(tmp_path / "extra"), "--name", "mine", "--env", "NCCL_P2P_DISABLE=0")
    made = home.json("engine", "add", "--python", sys.executable, *extra)
    assert (made["version"], made["path"]) == ("0.33.1", [str(tmp_path / "extra")])
    found = choose_home(home.settings, "vllm", "0.33.1")
    assert found.environment == {"NCCL_P2P_DISABLE": "0"}
    with pytest.raises(NoEngineHomeError, match=r"No vLLM 0\.33\.0 is set up") as other:
        choose_home(home.settings, "vllm", "0.33.0")
    assert "engine install vllm==0.33.0" in (other.value.next_step or "")
    assert "mine (0.33.1)" in (other.value.next_step or "")
    assert choose_home(home.settings, "vllm", "0.33.0", "mine").version == "0.33.1"


def test_a_program_must_say_its_version_and_be_there(home: Home, tmp_path: Path) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho 'version: 11434 (abc)' >&2\n")
    assert home.run("engine", "add", "--binary", str(program)).returncode == 7  # it may not be run
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert home.json("engine", "add", "--binary", str(program))["version"] == "b11434"
    program.unlink()
    [row] = home.json("engine", "list")
    assert "is not there" in row["problem"]
    with pytest.raises(NoEngineHomeError, match="cannot be used"):
        choose_home(home.settings, "llamacpp", "b11434")
    assert home.run("engine", "add").returncode == 2
    assert home.run("engine", "add", "--binary", "/bin/true").returncode == 7


def test_files_that_hold_no_home_are_listed_with_the_reason(home: Home) -> None:
    folder = home.settings.engines_dir
    folder.mkdir(parents=True)
    for name, text in {"a": "kind = 1", "b": "not toml", "c": 'kind = "vllm"\nversion = "1"\n'}.items():
        (folder / f"{name}.toml").write_text(text)
    rows = home.json("engine", "list")
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert all(row["problem"] for row in rows)


texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20)


@given(
    st.builds(
        EngineHome,
        name=st.just("x"),
        kind=st.sampled_from(["vllm", "llamacpp"]),
        version=texts,
        interpreter=st.just("/usr/bin/python3"),
        path=st.lists(texts).map(tuple),
        environment=st.dictionaries(texts, texts),
        managed=st.booleans(),
    )
)
def test_a_home_survives_the_disk(tmp_path_factory: pytest.TempPathFactory, made: EngineHome) -> None:
    folder = tmp_path_factory.mktemp("engines")
    save_home(folder, made)
    assert load_homes(folder) == ((made,), {})


def plan(**changes: object) -> LaunchPlan:
    fields: dict[str, object] = {
        "slug": "vllm/x",
        "engine": "vllm",
        "engine_version": "0.33.0",
        "form": "native",
        "argv": ("vllm", "serve", "/m"),
        "host": "127.0.0.1",
        "port": 8000,
        "served_model": "m",
        "env": {"A": "plan", "B": "plan"},
    }
    return LaunchPlan(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_plan_takes_command_path_and_environment_of_its_home() -> None:
    mine = EngineHome(
        name="h",
        kind="vllm",
        version="0.33.1",
        interpreter="/e/bin/python",
        path=("/x", "/y"),
        environment={"A": "home"},
    )
    found = at_home(plan(), mine, {"PATH": "/usr/bin"})
    assert found.argv == ("/e/bin/python", "-m", "vllm.entrypoints.cli.main", "serve", "/m")
    assert found.env == {"A": "home", "B": "plan", "PATH": "/e/bin:/usr/bin", "PYTHONPATH": "/x:/y"}
    assert found.engine_version == "0.33.1"
    server = EngineHome(name="l", kind="llamacpp", version="b1", binary="/opt/llama-server")
    with pytest.raises(UsageError, match="needs vllm"):
        at_home(plan(), server, {})
    served = at_home(plan(engine="llamacpp", argv=("llama-server", "--model", "m")), server, {})
    assert served.argv == ("/opt/llama-server", "--model", "m")


def test_the_home_file_is_plain_toml(tmp_path: Path) -> None:
    path = save_home(tmp_path, EngineHome(name="l", kind="llamacpp", version="b1", binary="/opt/llama-server"))
    assert json.dumps(path.read_text()) == json.dumps(
        'kind = "llamacpp"\nversion = "b1"\nbinary = "/opt/llama-server"\nmanaged = false\n'
    )
