"""`tiers`, `show`, `map`, `render`, `get` and the refusals of `up`, as a user types them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from redline.catalog import load
from redline.cli.main import _run

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
DFLASH15 = "vllm/qwen38-27b-dual-dflash15-fast"

Type = Callable[..., tuple[int, str, str]]


@pytest.fixture
def type_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a command in an empty home and folder; returns exit code, standard output and standard error."""
    load._load.cache_clear()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("SPEC_N", "PORT", "MODEL_DIR", "BIND_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = _run(list(words))
        out, err = capsys.readouterr()
        return int(code), out, err

    return run


def test_tiers_all_lists_the_matrix(type_: Type) -> None:
    code, out, _ = type_("tiers", "--all")
    assert code == 0
    assert out.count("qwen38-27b-") == 23
    assert out.count("smollm2-135m-cpu-") == 7
    assert "(128/231 on 0.27.1 patched)" in out


def test_tiers_json_has_the_field_names(type_: Type) -> None:
    code, out, _ = type_("tiers", "3.8", "ultrafast", "dual", "--json")
    rows: list[dict[str, Any]] = json.loads(out)
    assert code == 0
    assert [row["slug"] for row in rows] == [ULTRA]
    assert rows[0]["speed"]["counts"] is False


def test_no_match_is_a_usage_error(type_: Type) -> None:
    code, _, err = type_("tiers", "gpt-9")
    assert code == 2
    assert "No tier matches" in err


def test_map_is_the_grid(type_: Type, snapshot: SnapshotAssertion) -> None:
    code, out, _ = type_("map", "qwen3.8-27b")
    assert code == 0
    assert out == snapshot


def test_show_explains_every_field(type_: Type, snapshot: SnapshotAssertion) -> None:
    code, out, _ = type_("show", ULTRA, "--explain")
    assert code == 0
    assert out == snapshot


def test_show_json_has_reasons_hazards_and_evidence(type_: Type) -> None:
    code, out, _ = type_("show", ULTRA, "--spec-n", "0", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["spec_n"] == {"value": 0, "origin": "cli:--spec-n"}
    assert "qwen3_dflash2.py" not in data["why"]["spec_n"]
    assert {row["metric"] for row in data["evidence"]} >= {"decode_code", "pool"}


def test_show_of_the_undeclared_says_what_is(type_: Type) -> None:
    code, out, _ = type_("show", DFLASH15)
    assert code == 0
    assert "undeclared: the complete W4A16-AutoRound-fast target" in " ".join(out.split())
    assert "block_size is 16" in out


@pytest.mark.parametrize("kind", ["argv", "docker", "compose"])
def test_render_of_the_undeclared_works_and_says_so(type_: Type, kind: str) -> None:
    code, out, err = type_("render", DFLASH15, "--as", kind)
    assert code == 0
    assert "qwen3.8-27b-dflash2-b16" in out
    assert "undeclared: " in err
    assert "dflash_config.block_size is 16" in " ".join(err.split())


def test_render_says_what_a_launch_would_be_refused_for(type_: Type) -> None:
    code, out, err = type_("render", ULTRA, "--spec-n", "15", "--set", "W4A8=1")
    assert code == 0
    assert '"num_speculative_tokens":15' in out
    assert "drafter-depth: SPEC_N=15 (cli:--spec-n)" in err
    assert "w4a8-engine" in err


def test_render_all_as_a_list_for_other_programs(type_: Type) -> None:
    code, out, _ = type_("render", "--all", "--as", "argv", "--json")
    rows = json.loads(out)
    assert code == 0
    assert {"slug", "argv", "env"} <= set(rows[0])
    assert sum(row["engine"] == "vllm" for row in rows) >= 21
    assert all(row["argv"][:2] == ["vllm", "serve"] for row in rows if row["engine"] == "vllm")


def test_render_one_as_an_object(type_: Type) -> None:
    code, out, _ = type_("render", ULTRA, "--json", "--port", "9000")
    assert code == 0
    assert json.loads(out)["argv"][-1] == "9000"


def test_render_of_the_embedded_engine_as_compose_is_a_usage_error(type_: Type) -> None:
    code, _, err = type_("render", "smollm2", "--as", "compose")
    assert code == 2
    assert "not started as docker" in err


def test_get_refuses_the_undeclared_and_names_what_to_declare(type_: Type) -> None:
    code, _, err = type_("get", DFLASH15)
    assert code == 5
    said = " ".join(err.split())
    assert "qwen3.8-27b-autoround-fast: the complete W4A16-AutoRound-fast target" in said
    assert "qwen3.8-27b-dflash2-b16: a DFlash2 export whose dflash_config.block_size is 16" in said


def test_up_refuses_the_undeclared(type_: Type) -> None:
    code, _, err = type_("up", DFLASH15, "--force", "--ignore-hardware", "--ignore-vram")
    assert code == 5
    assert "undeclared" in err
    assert "nothing was stopped or started" in err


@pytest.mark.parametrize("block_on_disk", [None, 8])
def test_depth_15_on_a_block_of_8_is_refused_with_its_reason(
    type_: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_on_disk: int | None
) -> None:
    monkeypatch.setenv("SPEC_N", "15")
    monkeypatch.setenv("MODEL_DIR", str(tmp_path))
    if block_on_disk:
        folder = tmp_path / "qwen3.8-27b-dflash2-w4a16"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"dflash_config": {"block_size": block_on_disk}}))
    code, _, err = type_("up", ULTRA, "--allow-experimental", "--ignore-hardware")
    assert code == 5
    said = " ".join(err.split())
    assert "SPEC_N=15 (env:SPEC_N) does not match the drafter: block_size 8 wants 7" in said
    assert ("config.json" in said.partition("wants 7 (")[2].partition(")")[0]) is bool(block_on_disk)


def test_unknown_name_in_dotenv_is_told_on_standard_error(type_: Type, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MAX_MODEL_LENGTH=1024\n")
    code, out, err = type_("show", ULTRA)
    assert code == 0
    assert "MAX_MODEL_LENGTH in .env is not a setting" in err
    assert "MAX_MODEL_LENGTH" not in out


def test_wrong_catalogue_file_is_a_usage_error_with_every_line(type_: Type, tmp_path: Path) -> None:
    folder = tmp_path / "xdg_config_home" / "redline" / "catalog"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text("topologies:\n  - {id: x, gpus: two, title: t}\nhazards: nothing\n")
    code, _, err = type_("tiers", "--all")
    assert code == 2
    assert "own.yaml:2:" in err
    assert "own.yaml:3:" in err
