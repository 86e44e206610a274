"""vLLM's boot log read into facts: every line the planner uses, refusals, and text that is no log at all."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.engine.vllm_boot import parse_boot_log
from redline.units import GIB

LOGS = Path(__file__).parent / "logs"
BOOT = """\
INFO [startup.py:48] vLLM server version 0.33.0, serving model /models/qwen3.8-27b-nvfp4
INFO [startup.py:96] non-default args: {'model_tag': '/models/qwen3.8-27b-nvfp4', 'max_model_len': 65536, \
'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.92, 'max_num_seqs': 2, 'max_num_batched_tokens': 4096, \
'kv_cache_dtype': 'fp8_e4m3', 'enforce_eager': True, 'speculative_config': {'method': 'mtp', \
'num_speculative_tokens': 3}}
INFO [gpu_worker.py:80] Using NVIDIA GeForce RTX 5090
INFO [qwen3_next.py:120] GDN prefill backend: FlashInfer
INFO [model_runner.py:428] Model loading took 10.41 GiB memory and 22.1 seconds
INFO [gpu_worker.py:500] Free memory on device (30.27/31.4 GiB) on startup. Desired GPU memory utilization is \
(0.92, 28.89 GiB). Actual usage is 10.41 GiB for weight, 1.52 GiB for peak activation, \
and 0.41 GiB for CUDAGraph memory.
INFO [gpu_worker.py:772] Available KV cache memory: 15.98 GiB
INFO [gpu_worker.py:772] Available KV cache memory: 15.97 GiB
INFO [interface.py:1108] Setting attention block size to 1568 tokens to ensure that attention page size fits.
INFO [kv_cache_utils.py:1147] GPU KV cache size: 812,345 tokens, \
Maximum concurrency for 65,536 tokens per request: 12.40x
"""


def test_everything_a_boot_says() -> None:
    facts = parse_boot_log(BOOT)
    assert facts.engine_version == "0.33.0"
    assert facts.model == "/models/qwen3.8-27b-nvfp4"
    assert (facts.context, facts.pool_tokens, facts.block_tokens) == (65_536, 812_345, 1568)
    assert (facts.tensor_parallel, facts.max_num_seqs, facts.batched_tokens) == (2, 2, 4096)
    assert facts.gpu_memory_utilization == 0.92
    assert facts.kv_cache_dtype == "fp8_e4m3"
    assert (facts.speculative_method, facts.speculative_tokens) == ("mtp", 3)
    assert facts.gdn_prefill == "flashinfer"
    assert facts.eager is True
    assert facts.available_bytes == round(15.97 * GIB)
    assert facts.loaded_bytes == round(10.41 * GIB)
    assert (facts.activation_bytes, facts.graph_bytes) == (round(1.52 * GIB), round(0.41 * GIB))
    assert (facts.total_bytes, facts.free_bytes) == (round(31.4 * GIB), round(30.27 * GIB))
    assert facts.gpu_name == "NVIDIA GeForce RTX 5090"
    assert not facts.refused


def test_the_last_boot_counts_and_the_least_memory() -> None:
    later = BOOT.replace("812,345", "700,000").replace("15.97", "14.10")
    facts = parse_boot_log(BOOT + later)
    assert facts.pool_tokens == 700_000
    assert facts.available_bytes == round(14.10 * GIB)


def test_a_refusal_names_what_it_needed() -> None:
    facts = parse_boot_log((LOGS / "kv-cache-too-small.log").read_text())
    assert facts.refused
    assert (facts.needed_bytes, facts.available_bytes) == (round(5.84 * GIB), round(5.29 * GIB))
    assert (facts.context, facts.estimated_context) == (262_144, 220_832)


@pytest.mark.parametrize("name", ["no-memory-for-cache.log", "gpu-memory-in-use.log"])
def test_other_refusals(name: str) -> None:
    assert parse_boot_log((LOGS / name).read_text()).refused


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_no_log_is_too_odd(path: Path) -> None:
    assert parse_boot_log(path.read_text(errors="replace")).engine == "vllm"


def test_arguments_that_are_no_dictionary_are_left() -> None:
    assert parse_boot_log("non-default args: {'a': open('x')}\nnon-default args: {1, 2}").tensor_parallel is None
    assert parse_boot_log("non-default args: " + "{" * 5000 + "}").model is None


PIECES = st.sampled_from(
    [
        "non-default args: {",
        "'max_model_len': ",
        "Available KV cache memory: ",
        "GPU KV cache size: ",
        "Maximum concurrency for ",
        "Free memory on device (",
        "max seq len (",
        "num_gpu_blocks=",
        "with config: model='",
        " GiB",
        "/31.4 GiB) on startup",
        "1e999",
        ",,,",
        "-5.5 GiB",
        " tokens",
        " tokens per request: 1.2.3x",
        "...",
        "}",
        "\n",
        "GiB) on startup",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_raises(pieces: list[str]) -> None:
    parse_boot_log("".join(pieces))


@pytest.mark.parametrize(
    "line",
    [
        "Available KV cache memory: 1.2.3 GiB",
        "Available KV cache memory: ... GiB",
        "Free memory on device (../31.4 GiB) on startup",
        "Free memory on device (1.2.3/4.5.6 GiB) on startup",
        "max seq len (,,), (1..2 GiB KV cache is needed, which is larger than the available KV cache memory (... GiB)",
        "GPU KV cache size: ,, tokens",
        "Maximum concurrency for , tokens per request: .x",
        "non-default args: {'max_model_len': 1e999, 'tensor_parallel_size': 'many', 'gpu_memory_utilization': []}",
        "Model loading took ... GiB",
        "num_gpu_blocks=99999999999999999999999999",
    ],
)
def test_numbers_that_are_none_are_not_there(line: str) -> None:
    facts = parse_boot_log(line)
    assert (facts.available_bytes, facts.pool_tokens, facts.context, facts.loaded_bytes) == (None, None, None, None)
