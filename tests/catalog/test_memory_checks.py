"""The facts behind plans: what is wrong is said with file and line, before any plan."""

from dataclasses import fields
from pathlib import Path

import pytest

from redline.catalog.load import load_catalog
from redline.catalog.memory_checks import CONDITIONS
from redline.errors import UsageError
from redline.plan.overhead import Conditions

BOOT = """boots:
  - id: mine
    model: "qwen3.8-27b"
    hardware: "rtx-3090"
    gpus: 2
    engine: "vllm"
    engine_version: "0.33.0"
    weights: "int4"
    weights_bytes: 19574313452
    tensor_parallel: 2
    max_model_len: 262144
    max_num_seqs: 1
    batched_tokens: 8192
    kv_cache_dtype: "fp8_e4m3"
    drafter: "none"
    spec_n: 0
    state_dtype: "float32"
    gdn_prefill: "triton"
    date: "2026-11-29"
    gpu_memory_utilization: 0.9
    pool_tokens: 652346
    source: "my own log"
"""


def test_a_boot_of_the_user_joins(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(BOOT)
    assert "mine" in load_catalog(tmp_path).boots


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"rtx-3090"', '"voodoo-2"', "unknown hardware 'voodoo-2'"),
        ('"int4"', '"ternary"', "unknown format of weights 'ternary'"),
        ("tensor_parallel: 2", "tensor_parallel: 0", "tensor_parallel must be at least 1"),
        ("max_model_len: 262144", "max_model_len: 0", "max_model_len must be at least 1"),
        ("utilization: 0.9", "utilization: 1.5", "1.5 is no share"),
        ("spec_n: 0", "spec_n: -1", "cannot be negative"),
        ('"my own log"', '" "', "a boot needs a source"),
    ],
)
def test_a_wrong_boot_is_said_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "mine.yaml").write_text(BOOT.replace(old, new))
    with pytest.raises(UsageError) as caught:
        load_catalog(tmp_path)
    assert any(words in line and "mine.yaml:2" in line for line in caught.value.details)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("when: {colour: red}", "asks for 'colour'"),
        ("when: {engine: newest}", "is no range of versions"),
        ("when: {}\n    prior_sd_gib: 0", "a spread above zero"),
        ("when: {}\n    prior_gib: .nan", "a prior needs a number"),
    ],
)
def test_a_wrong_overhead_is_said(tmp_path: Path, text: str, words: str) -> None:
    rest = "".join(
        f"    {line}\n"
        for line in ("title: t", "prior_gib: 1", "prior_sd_gib: 1", "source: s")
        if line.split(":")[0] not in text
    )
    (tmp_path / "mine.yaml").write_text(f"overheads:\n  - id: mine\n    {text}\n{rest}")
    with pytest.raises(UsageError) as caught:
        load_catalog(tmp_path)
    assert any(words in line for line in caught.value.details)


def test_a_gpu_cannot_show_more_than_it_has(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "hardware:\n  - {id: big, title: b, compute: '8.6', memory_total_bytes: 5, torch_visible_bytes: 6, "
        "bandwidth_bytes_s: 1, source: s}\n"
    )
    with pytest.raises(UsageError) as caught:
        load_catalog(tmp_path)
    assert "hardware big" in caught.value.details[0]


def test_the_conditions_are_those_of_plans() -> None:
    assert set(CONDITIONS) == {item.name for item in fields(Conditions)}
