"""A catalogue of two tiny tiers on one GPU, files that fit them, and engine homes that play llama-server."""

import hashlib
import sys
from pathlib import Path

from tests.conftest import Home

FAST, MAX, VLLM = "llamacpp/tiny-single-fast", "llamacpp/tiny-single-max", "vllm/tiny-single-fast"
VERSION, VLLM_VERSION = "b11434", "0.33.0"
# What a machine without GPUs needs to be told.
ANYWAY = ("--ignore-hardware", "--ignore-vram")
_WEIGHTS = b"GGUF" + b"\0" * 60

_CATALOGUE = """
models:
  - id: tiny
    slug: tiny
    title: Tiny
    license: Apache-2.0
    context_max: 8192
    source: these tests
    architecture: {family: llama, layers: 2, hidden: 64, ffn: 128, vocab: 1000, heads: 4, kv_heads: 2, head_dim: 16,
      tied_embeddings: true, source: these tests}
    samplers:
      - {id: instruct, thinking: false, temperature: 0.2, top_p: 0.9, top_k: 0, min_p: 0, presence_penalty: 0,
         repetition_penalty: 1, source: these tests}
    capabilities:
      tools: {offered: false, why: tests, source: these tests}
      thinking: {offered: false, why: tests, source: these tests}
      vision: {offered: false, why: tests, source: these tests}
artifacts:
  - id: tiny-q4
    title: Tiny Q4
    model: tiny
    format: gguf
    quant: Q4_0
    license: Apache-2.0
    source: these tests
    origin: {kind: pypi_wheel, package: tiny, version: "1", wheel: tiny-1-py3-none-any.whl, size_bytes: 64,
      sha256: HASH, member: tiny.gguf}
    files: [{path: tiny.gguf, size_bytes: 64, sha256: HASH}]
  - id: tiny-st
    title: Tiny safetensors
    model: tiny
    format: safetensors
    quant: bf16
    license: Apache-2.0
    source: these tests
    origin: {kind: pypi_wheel, package: tiny, version: "1", wheel: tiny-1-py3-none-any.whl, size_bytes: 64,
      sha256: HASH, member: tiny.gguf}
    files: [{path: tiny.gguf, size_bytes: 64, sha256: HASH}]
ladders:
  - model: tiny
    engine: vllm
    topologies: [single]
    tiers: [{name: fast, series: speed, depth: base}]
  - model: tiny
    engine: llamacpp
    topologies: [single]
    tiers: [{name: fast, series: speed, depth: base}, {name: max, series: fidelity, depth: base}]
rules:
  - id: tiny-tiers
    when: {model: tiny}
    set: {drafter: none, spec_n: 0, max_model_len: 8192, max_num_seqs: 1, status: production, status_note: null}
    source: these tests
  - id: tiny-llamacpp
    when: {model: tiny, engine: llamacpp}
    set: {artifact: tiny-q4, kv_cache_dtype: f16, port: {by: name, of: {fast: FASTPORT, max: MAXPORT}}}
    source: these tests
  - id: tiny-vllm
    when: {model: tiny, engine: vllm}
    set: {artifact: tiny-st, kv_cache_dtype: auto, port: VLLMPORT, gpu_memory_utilization: 0.9,
      attention_backend: null, quantization: null}
    absent: [tool_parser]
    source: these tests
  - id: tiny-never-reasons
    when: {model: tiny}
    absent: [reasoning_effort, reasoning_parser]
    source: these tests
"""


def furnish(home: Home, *ports: int) -> None:
    """Give a home the catalogue and the files."""
    digest = hashlib.sha256(_WEIGHTS).hexdigest()
    text = _CATALOGUE.replace("HASH", digest).replace("FASTPORT", str(ports[0])).replace("MAXPORT", str(ports[1]))
    text = text.replace("VLLMPORT", str(ports[2] if len(ports) > 2 else 18123))
    settings = home.settings
    settings.user_catalog_dir.mkdir(parents=True)
    (settings.user_catalog_dir / "tiny.yaml").write_text(text)
    for name in ("tiny-q4", "tiny-st"):
        folder = settings.models_dir / name
        folder.mkdir(parents=True)
        (folder / "tiny.gguf").write_bytes(_WEIGHTS)


def llama_server(home: Home, scenario: str = "healthy-text-only", name: str = "played") -> Path:
    """Write a program that plays llama-server by a scenario of the fake engine, and make it an engine home."""
    program = home.path / name
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "version: {VERSION[1:]} (0000000)" && exit\n'
        f'exec {sys.executable} -P -m redline.fake {scenario} --dialect llamacpp -- "$@"\n'
    )
    program.chmod(0o755)
    done = home.run("engine", "add", "--binary", str(program), "--name", name)
    assert done.returncode == 0, done.stderr
    return program


def vllm(home: Home, scenario: str = "healthy-text-only", name: str = "played-vllm") -> None:
    """Lay out a package that plays vLLM by a scenario of the fake engine, and adopt it with this interpreter."""
    extra = home.path / name
    for folder in ("vllm/entrypoints/cli", f"vllm-{VLLM_VERSION}.dist-info"):
        (extra / folder).mkdir(parents=True)
    (extra / f"vllm-{VLLM_VERSION}.dist-info" / "METADATA").write_text(f"Name: vllm\nVersion: {VLLM_VERSION}\n")
    (extra / "vllm" / "entrypoints" / "cli" / "main.py").write_text(
        "import sys\nfrom redline.fake.command import main\n"
        f"sys.exit(main([{scenario!r}, '--dialect', 'vllm', '--', *sys.argv[1:]]))\n"
    )
    done = home.run("engine", "add", "--python", sys.executable, "--path", str(extra), "--name", name)
    assert done.returncode == 0, done.stderr
