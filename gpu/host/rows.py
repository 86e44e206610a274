"""Rows of a plan of experiments: read from YAML, and turned into what vLLM is started with. Starts nothing.

A row is a mapping with an `id` and a `kind`: `boot` (an engine on dummy weights), `copy` (memory bandwidth) or
`program` (a command). What a boot asks for is in plain words (`drafter`, `depth`, `kv`, `state`, `context`, ...);
`redline plan`'s own inputs are made from the same words, so prediction and boot cannot drift apart.
"""

from pathlib import Path
from typing import Any

import yaml

BOOT_DEFAULTS: dict[str, Any] = {
    "drafter": "none",
    "depth": 0,
    "checkpoint": "",
    "kv": "bf16",
    "state": "float32",
    "context": 65536,
    "seqs": 1,
    "batched": 8192,
    "prefix_caching": True,
    "tp": 1,
    "utilization": 0.9,
    "graphs": True,
    "prefill": "triton",
    "block_size": None,
    "synthetic": None,
    "shards": 1,
    "shape": "qwen3.8-27b",
    "compile": False,
}
KV_NAMES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
GRAPHS = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}


def read_plan(path: Path) -> dict[str, Any]:
    """Return a plan with every row complete.

    Raises:
        ValueError: two rows of one id, or a word that no row knows.
    """
    plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    rows, seen = [], set()
    for stated in plan["rows"]:
        row = {"lane": "gpu0", "est_s": 40, "timeout_s": 200, "measure": (), **stated}
        if row["id"] in seen:
            raise ValueError(f"two rows are called {row['id']}")
        seen.add(row["id"])
        if row["kind"] == "boot":
            unknown = set(row["asked"]) - set(BOOT_DEFAULTS)
            if unknown:
                raise ValueError(f"row {row['id']} asks for {', '.join(sorted(unknown))}, which no boot knows")
            row["asked"] = {**BOOT_DEFAULTS, **row["asked"]}
        rows.append(row)
    return {**plan, "rows": rows}


def engine_arguments(asked: dict[str, Any], checkpoints: Path) -> dict[str, Any]:
    """Return the keyword arguments of `vllm.LLM` for what a boot asks for."""
    target = "target-half" if asked["shards"] == 2 else f"target-{asked['state']}"
    arguments: dict[str, Any] = {
        "model": str(checkpoints / target),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "dtype": "bfloat16",
        "max_model_len": asked["context"],
        "gpu_memory_utilization": asked["utilization"],
        "max_num_seqs": asked["seqs"],
        "max_num_batched_tokens": asked["batched"],
        "enable_prefix_caching": asked["prefix_caching"],
        "disable_log_stats": False,
        "tensor_parallel_size": asked["tp"],
        "kv_cache_dtype": KV_NAMES[asked["kv"]] if asked["kv"] != "bf16" else "auto",
    }
    if asked["prefill"]:
        arguments["gdn_prefill_backend"] = asked["prefill"]
    if asked["block_size"]:
        arguments["block_size"] = asked["block_size"]
    if not asked["graphs"]:
        arguments["enforce_eager"] = True
    elif not asked["compile"]:
        arguments["compilation_config"] = GRAPHS
    speculative = speculative_config(asked, checkpoints)
    if speculative:
        arguments["speculative_config"] = speculative
    return arguments


def speculative_config(asked: dict[str, Any], checkpoints: Path) -> dict[str, Any] | None:
    """Return vLLM's own words for the drafter, or None."""
    if asked["drafter"] == "none":
        return None
    config: dict[str, Any] = {"num_speculative_tokens": asked["depth"]}
    if asked["drafter"] == "mtp":
        config["method"] = "mtp"
    else:
        config["method"] = "dflash"
        config["model"] = str(checkpoints / (asked["checkpoint"] or "drafter-8"))
        config["draft_load_config"] = {"load_format": "dummy"}
    if asked["synthetic"]:
        config["rejection_sample_method"] = "synthetic"
        config["synthetic_acceptance_length"] = asked["synthetic"]
    return config
