"""What a boot states, from logs of both engines."""

from pathlib import Path

import pytest

from redline.engine.boot_facts import parse_boot_facts
from redline.engine.log_text import split_lines
from redline.plan.types import BootFacts
from redline.units import GIB

LOGS = Path(__file__).parent / "logs"


def _facts(engine: str, log: str) -> BootFacts:
    return parse_boot_facts(engine, split_lines([(LOGS / log).read_bytes()]))


def test_a_boot_of_vllm() -> None:
    assert _facts("vllm", "healthy-vllm.log") == BootFacts(
        engine="vllm",
        engine_version="0.33.0",
        model="models/qwen3.8-27b-int4",
        available_bytes=round(9.09 * GIB),
        block_tokens=1648,
        pool_tokens=212_977,
        context=204_800,
        tensor_parallel=2,
        gpu_memory_utilization=0.9,
        kv_cache_dtype="fp8_e4m3",
        speculative_method="dflash",
        speculative_tokens=7,
        loaded_bytes=round(9.62 * GIB),
    )


def test_an_older_boot_says_the_same_on_more_lines() -> None:
    facts = _facts("vllm", "healthy-vllm-0.8.log")
    assert (facts.engine_version, facts.pool_tokens, facts.context) == ("0.8.3", 148_096, 131_072)
    assert facts.available_bytes is None


def test_a_boot_that_failed_states_what_it_came_to() -> None:
    facts = _facts("vllm", "kv-cache-too-small.log")
    assert (facts.available_bytes, facts.pool_tokens, facts.context) == (round(5.29 * GIB), None, 262_144)


def test_of_several_workers_the_one_with_least_memory_counts() -> None:
    lines = [f"Available KV cache memory: {gib} GiB" for gib in ("12.26", "12.24", "12.30")]
    assert parse_boot_facts("vllm", lines).available_bytes == round(12.24 * GIB)


@pytest.mark.parametrize(
    "line", ["num_gpu_blocks=4419", "# GPU blocks: 4,419, # CPU blocks: 0", '"num_gpu_blocks": "4419"']
)
def test_blocks_in_every_spelling(line: str) -> None:
    assert parse_boot_facts("vllm", [line]).blocks == 4419


def test_a_boot_of_llamacpp() -> None:
    facts = _facts("llamacpp", "healthy-llamacpp.log")
    assert (facts.engine_version, facts.context, facts.pool_tokens) == ("b0-unknown", 2048, None)


def test_an_engine_that_is_not_known_states_nothing() -> None:
    assert parse_boot_facts("sglang", ["GPU KV cache size: 5 tokens"]) == BootFacts(engine="sglang")
