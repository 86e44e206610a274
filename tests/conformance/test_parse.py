"""What the vLLM command check does before and after vLLM: find the arguments, choose stand-ins, say what was wrong."""

import json
import os

import pytest

from conformance.engine import SHAPES, NotTheEnvironmentError, prepare
from conformance.parse import (
    PROBES,
    NotACommandError,
    Outcome,
    changed,
    first_line,
    read_rows,
    serve_arguments,
    stand_in,
    table,
)


@pytest.mark.parametrize(
    "program",
    [
        ["vllm", "serve"],
        ["/opt/venv/bin/vllm", "serve"],
        ["python", "-m", "vllm.entrypoints.openai.api_server"],
        ["/usr/bin/python3", "-P", "-m", "vllm.entrypoints.cli.main", "serve"],
    ],
)
def test_the_arguments_follow_the_program(program: list[str]) -> None:
    assert serve_arguments([*program, "--port", "8000"]) == ["--port", "8000"]


@pytest.mark.parametrize("argv", [[], ["vllm", "bench"], ["llama-server", "-m", "x"], ["python", "-m"]])
def test_another_command_is_named(argv: list[str]) -> None:
    with pytest.raises(NotACommandError, match="not a vLLM server command"):
        serve_arguments(argv)


@pytest.mark.parametrize(
    ("kind", "slug", "folder"),
    [
        ("target", "vllm/qwen38-27b-dual-ultrafast", "qwen38-27b-int4"),
        ("target", "vllm/qwen38-27b-multi4-supermax", "qwen38-27b-fp8"),
        ("target", "vllm/qwen38-27b-single-nvfp4", "qwen38-27b-nvfp4"),
        ("target", "vllm/another-model-single", "qwen38-27b"),
        ("drafter", "vllm/qwen38-27b-dual-ultrafast", "qwen38-27b-dflash2"),
        ("drafter", "vllm/qwen38-27b-dual-dflash15-fast", "qwen38-27b-dflash2-block16"),
    ],
)
def test_a_slug_has_a_stand_in_with_a_configuration(kind: str, slug: str, folder: str) -> None:
    assert stand_in(kind, slug) == str(SHAPES / folder)
    assert json.loads((SHAPES / folder / "config.json").read_text())["num_hidden_layers"] > 0


def test_stand_ins_of_one_model_differ_in_weights_only() -> None:
    plain = json.loads((SHAPES / "qwen38-27b" / "config.json").read_text())
    for name in ("int4", "fp8", "nvfp4"):
        other = json.loads((SHAPES / f"qwen38-27b-{name}" / "config.json").read_text())
        assert other.pop("quantization_config")
        assert other == plain


def test_the_telling_line_of_an_exception_is_kept() -> None:
    error = "1 validation error for CacheConfig\ncache_dtype\n  Value error, Invalid 'fp9' [type=value_error, input=1]"
    assert first_line(ValueError(error)) == "cache_dtype: Invalid 'fp9'"
    assert first_line(ValueError("plain words")) == "plain words"
    assert first_line(ValueError()) == "ValueError()"


def test_a_changed_command_replaces_or_adds() -> None:
    assert changed(["vllm", "serve", "--port", "1"], ["--port", "2"]) == ["vllm", "serve", "--port", "2"]
    assert changed(["vllm", "serve"], ["--a", "1", "--b", "2"]) == ["vllm", "serve", "--a", "1", "--b", "2"]


def test_the_table_marks_what_was_not_taken() -> None:
    rows = table(
        [
            Outcome("vllm/a", (), parsed=True, configured=True, weights="inc"),
            Outcome("vllm/longer", ("--new-flag",), parsed=False, configured=False, reason="unrecognized arguments"),
        ]
    )
    assert rows.splitlines()[1].split() == ["vllm/a", "yes", "yes", "inc", "-"]
    assert rows.splitlines()[2].split()[:5] == ["vllm/longer", "NO", "NO", "-", "--new-flag"]


def test_every_probe_changes_a_sample_command_and_every_gap_of_vllm_says_who_fills_it() -> None:
    samples = {row["slug"] for row in read_rows((SHAPES.parent / "sample_argv.jsonl").read_text().splitlines())}
    probes = json.loads(PROBES.read_text())["probes"]
    assert {probe["slug"] for probe in probes} <= samples
    assert all(probe["note"] for probe in probes if probe["verdict"] == "taken")
    assert {"taken", "config rejects", "parser rejects"} == {probe["verdict"] for probe in probes}


def test_without_the_environment_the_stage_says_how_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(NotTheEnvironmentError, match="conformance/setup"):
        prepare()
