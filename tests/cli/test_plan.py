"""`redline plan` as a user types it: slugs, models, configs, logs, pictures, and words that make no sense."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from syrupy.assertion import SnapshotAssertion

from redline.catalog import load
from redline.cli.main import _run

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
SUPERMAX = "vllm/qwen38-27b-multi4-supermax"
LOGS = Path(__file__).parents[1] / "engine" / "logs"
CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}

Type = Callable[..., tuple[int, str, str]]


@pytest.fixture
def type_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a command in an empty home and folder; returns exit code, standard output and standard error."""
    load._load.cache_clear()
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    for name in ("SPEC_N", "PORT", "MODEL_DIR", "BIND_HOST", "MAX_MODEL_LEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        code = _run(list(words))
        out, err = capsys.readouterr()
        return int(code), out, err

    return run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "mymodel"
    folder.mkdir()
    file = folder / "config.json"
    file.write_text(json.dumps(CONFIG))
    return file


@pytest.mark.parametrize(
    "words",
    [
        (ULTRA, "--rig", "2x3090"),
        (ULTRA, "--rig", "2x3090", "--ctx", "262144"),
        (SUPERMAX, "--rig", "4x3090"),
        ("vllm/qwen38-27b-dual-dflash15-fast", "--rig", "2x3090"),
        ("llamacpp/qwen38-27b-single-iq4xs", "--rig", "1x3090"),
        ("--model", "qwen3.8-27b", "--rig", "4x3090"),
    ],
    ids=["ultrafast", "ultrafast-262k", "multi4-supermax", "dflash15", "gguf", "model"],
)
def test_plans_read_well(type_: Type, words: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    code, out, err = type_("plan", *words)
    assert (code, err) == (0, "")
    assert out == snapshot


def test_json_has_the_whole_plan(type_: Type) -> None:
    code, out, _ = type_("plan", ULTRA, "--rig", "2x3090", "--json")
    fit = json.loads(out)["fit"]
    assert code == 0
    assert fit["slug"] == ULTRA
    assert fit["pool_tokens"] == pytest.approx(212_977, rel=0.01)
    assert len(fit["devices"]) == 2
    assert {"weights", "drafter", "overhead", "cache"} == {term["name"] for term in fit["devices"][0]["terms"]}
    assert fit["boots"]


def test_settings_change_the_plan(type_: Type) -> None:
    def tokens(*words: str) -> int:
        return int(json.loads(type_("plan", ULTRA, "--rig", "2x3090", "--json", *words)[1])["fit"]["pool_tokens"])

    plain = tokens()
    assert tokens("--set", "GPU_MEMORY_UTILIZATION=0.8") < plain
    assert tokens("--set", "SPEC_N=0") > plain
    assert tokens("--spec-n", "0") == tokens("--set", "SPEC_N=0")


def test_a_speed_is_not_claimed_for_other_settings(type_: Type) -> None:
    assert json.loads(type_("plan", ULTRA, "--rig", "2x3090", "--json", "--ctx", "8192")[1])["speed"]
    assert json.loads(type_("plan", ULTRA, "--rig", "2x3090", "--json", "--spec-n", "0")[1])["speed"] is None


def test_model_json(type_: Type) -> None:
    code, out, _ = type_("plan", "--model", "qwen3.8-27b", "--rig", "2x3090", "--json")
    assert code == 0
    assert len(json.loads(out)["rows"]) == 23


def test_this_machine_is_the_rig_by_default(type_: Type) -> None:
    code, out, _ = type_("plan", "llamacpp/smollm2-135m-cpu-fast")
    assert code == 0
    assert "host" in out


def test_a_rig_of_mixed_gpus(type_: Type) -> None:
    code, out, _ = type_("plan", ULTRA, "--rig", "1x5090+1x3090")
    assert code == 0
    assert "different architectures" in " ".join(out.split())


def test_a_rig_file(type_: Type, tmp_path: Path) -> None:
    (tmp_path / "rig.yaml").write_text("gpus:\n  - {name: rtx3090, count: 2, free_gib: 20}\n")
    code, out, _ = type_("plan", ULTRA, "--rig", "rig.yaml")
    assert code == 0
    assert "NO" in out
    assert "19.7 GiB are free" in out
    assert "GPU_MEMORY_UTILIZATION=0.83 MAX_MODEL_LEN=" in out


def test_the_picture_as_svg(type_: Type, tmp_path: Path) -> None:
    code, _, _ = type_("plan", ULTRA, "--rig", "2x3090", "--svg", "plan.svg")
    assert code == 0
    assert ET.parse(tmp_path / "plan.svg").getroot().tag.endswith("svg")


def test_a_local_config(type_: Type, config: Path) -> None:
    code, out, _ = type_("plan", "--hf", str(config), "--rig", "2x3090", "--set", "MAX_MODEL_LEN=32768")
    assert code == 0
    assert out.startswith("mymodel on 2x NVIDIA GeForce RTX 3090\n  verdict   FIT")


def test_a_config_of_another_family_is_unknown_with_a_reason(type_: Type, config: Path) -> None:
    config.write_text(json.dumps(CONFIG | {"model_type": "deepseek_v3"}))
    code, out, _ = type_("plan", "--hf", str(config), "--rig", "2x3090")
    assert code == 0
    assert "UNKNOWN" in out
    assert "deepseek_v3" in out


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"model_type": "qwen3"}', '{"model_type": "qwen3", "hidden_size": -1}']
)
def test_a_config_that_says_too_little_is_unknown(type_: Type, config: Path, text: str) -> None:
    config.write_text(text)
    code, out, _ = type_("plan", "--hf", str(config), "--rig", "2x3090")
    assert code == 0
    assert "UNKNOWN" in out


def test_a_boot_log(type_: Type) -> None:
    code, out, _ = type_("plan", ULTRA, "--from-log", str(LOGS / "healthy-vllm.log"), "--rig", "2x3090")
    assert code == 0
    assert "212,977 tokens" in out


def test_a_boot_log_as_json(type_: Type) -> None:
    code, out, _ = type_("plan", ULTRA, "--from-log", str(LOGS / "kv-cache-too-small.log"), "--rig", "2x3090", "--json")
    assert code == 0
    assert json.loads(out)["facts"]["refused"] is True


@pytest.mark.parametrize("name", ["oom-first-prefill.log", "healthy-llamacpp.log", "garbage-output.log"])
def test_a_log_that_says_nothing_of_memory(type_: Type, name: str) -> None:
    code, out, _ = type_("plan", ULTRA, "--from-log", str(LOGS / name), "--rig", "2x3090")
    assert code == 0
    assert "check" in out


def test_a_log_of_an_unknown_version(type_: Type, tmp_path: Path) -> None:
    (tmp_path / "boot.log").write_text((LOGS / "healthy-vllm.log").read_text().replace("0.33.0", "0.99.0"))
    code, out, _ = type_("plan", ULTRA, "--from-log", "boot.log", "--rig", "2x3090")
    assert code == 0
    assert "0.99.0 is not known here" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 2),
        ((ULTRA, "--model", "qwen3.8-27b"), 2),
        (("--model", "gpt-9"), 2),
        (("vllm/no-such-tier",), 2),
        ((ULTRA, "--rig", "2x9090"), 2),
        ((ULTRA, "--rig", "-1x3090"), 2),
        ((ULTRA, "--rig", "99999999x3090"), 2),
        ((ULTRA, "--rig", ""), 2),
        ((ULTRA, "--rig", "none.yaml"), 7),
        ((ULTRA, "--set", "COLOUR=red"), 2),
        ((ULTRA, "--set", "MAX_MODEL_LEN=-5"), 2),
        ((ULTRA, "--set", "GPU_MEMORY_UTILIZATION=1.5"), 2),
        ((ULTRA, "--ctx", "lots"), 2),
        ((ULTRA, "--from-log", "none.log"), 7),
        (("--from-log", str(LOGS / "healthy-llamacpp.log")), 2),
        ((ULTRA, "--rig", "2x3090", "--svg", "no/such/folder/x.svg"), 7),
    ],
)
def test_what_cannot_be_answered_is_an_error_with_a_next_step(type_: Type, words: tuple[str, ...], code: int) -> None:
    found, out, err = type_("plan", *words)
    assert found == code
    assert err.startswith("error")
    assert "Traceback" not in err + out
    assert len(err.strip().splitlines()) >= 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--set", "TP=64"), "64"),
        (("--set", "TP=3"), "split over 1, 2, 4, 8 GPUs, not 3"),
        (("--ctx", "1000000"), "262,144"),
        (("--set", "KV_CACHE_DTYPE=fp8_e5m2", "--set", "GPUS=7"), "this rig has no GPU"),
        (("--set", "PP=2"), "pipeline parallel"),
    ],
)
def test_what_cannot_be_served_is_a_verdict(type_: Type, words: tuple[str, ...], reason: str) -> None:
    code, out, _ = type_("plan", ULTRA, "--rig", "4x3090", *words)
    assert code == 0
    assert "NO" in out or "UNKNOWN" in out
    assert reason in " ".join(out.split())


@pytest.mark.parametrize("rig", ["rig.yaml", "0x3090"])
def test_no_gpu_at_all(type_: Type, tmp_path: Path, rig: str) -> None:
    (tmp_path / "rig.yaml").write_text("gpus: []\n")
    code, out, _ = type_("plan", ULTRA, "--rig", rig)
    assert code == 0
    assert "NO" in out
    assert "no GPU" in out


def test_a_suggestion_can_be_typed_as_it_stands(type_: Type) -> None:
    wanted = (ULTRA, "--rig", "2x3090", "--ctx", "262144", "--json")
    fit = json.loads(type_("plan", *wanted)[1])["fit"]
    for item in fit["suggestions"]:
        change = item["change"]
        if "=" in change:
            sets = [word for pair in change.split() for word in ("--set", pair)]
            again = json.loads(type_("plan", *wanted, *sets)[1])["fit"]
        elif "/" in change:
            again = json.loads(type_("plan", change, "--rig", "2x3090", "--ctx", "262144", "--json")[1])["fit"]
        else:
            continue
        assert again["verdict"] == item["verdict"], change
        assert again["largest_context"] == item["largest_context"], change
    assert any("/" in item["change"] for item in fit["suggestions"])
