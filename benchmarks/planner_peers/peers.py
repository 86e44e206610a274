"""Other estimators on the planner's rows, through their Python functions, with a config as a local value.

Reads `{"config", "rows", "gguf"}` as JSON from standard input, writes `{peer: {"version", "how", "tokens", "mib",
"not_run"}}`. Each peer is told more than a user would tell it where that helps it: the real size of the files, the
memory PyTorch sees, the utilization. None is told anything that was measured.
"""

import importlib
import importlib.metadata
import json
import sys
from collections.abc import Callable
from typing import Any

GIB = 2**30
VALUE_BYTES = {"fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


def value_bytes(row: dict[str, Any]) -> int:
    return VALUE_BYTES.get(row["kv_cache_dtype"], 2)


def budget(row: dict[str, Any]) -> float:
    """Bytes that the engine may use on all GPUs."""
    return float(row["gpu_memory_utilization"] * row["visible_bytes"] * row["gpus"])


def hf_mem(config: dict[str, Any], row: dict[str, Any]) -> float:
    module = importlib.import_module("hf_mem.safetensors.kv_cache")
    kind = "F8_E4M3" if value_bytes(row) == 1 else "BF16"
    cache = module.compute_safetensors_kv_cache_size(config, kind, row["max_model_len"])
    return float((budget(row) - row["weights_bytes"]) / (cache / row["max_model_len"]))


def kvfit(config: dict[str, Any], row: dict[str, Any]) -> float:
    architectures, planner, hardware = (
        importlib.import_module(f"kvfit.{n}") for n in ("architectures", "planner", "hardware")
    )
    context = row["max_model_len"]
    cache = architectures.estimate_cache(config, context_tokens=context, kv_bytes=float(value_bytes(row)))
    card = hardware.Hardware(id="row", label="row", memory_gib=row["visible_bytes"] / GIB)
    layout = planner.plan_topologies(
        cache,
        weight_bytes=row["weights_bytes"],
        hardware=card,
        gpus=row["gpus"],
        utilization=row["gpu_memory_utilization"],
        tensor_parallel=row["gpus"],
    )[0]
    left = layout.budget_per_rank_bytes - layout.weights_per_rank_bytes - layout.fixed_cache_per_rank_bytes
    return float(left / layout.kv_per_sequence_per_rank_bytes * context)


def modelinfo(config: dict[str, Any], row: dict[str, Any]) -> float:
    module = importlib.import_module("modelinfo.calculator")
    tensors = {"__metadata__": {"lazy_fetch": True, "total_size": float(row["weights_bytes"])}}
    found = module.calculate_footprint(
        tensors,
        context_length=row["max_model_len"],
        config=config,
        gpu_count=row["gpus"],
        is_vllm=True,
        gpu_vram_bytes=float(row["visible_bytes"] * row["gpus"]),
        gpu_util=row["gpu_memory_utilization"],
    )
    return float(found["vllm_metrics"]["max_serving_capacity"])


def hf_vram_calc(config: dict[str, Any], row: dict[str, Any]) -> float:
    models, calculator, settings = (
        importlib.import_module(f"hf_vram_calc.{n}") for n in ("models", "calculator", "config")
    )
    shape = models.ModelConfig(
        model_name="row",
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        intermediate_size=config["intermediate_size"],
        num_key_value_heads=config["num_key_value_heads"],
    )
    sizes = calculator.VRAMCalculator(settings.ConfigManager())
    kind = "fp8" if value_bytes(row) == 1 else "fp16"
    cache = sizes.calculate_kv_cache_memory(shape, kind, 1, row["max_model_len"]) * GIB
    weights = sizes.calculate_inference_memory(row["weights_bytes"] / GIB) * GIB
    return float((budget(row) - weights) / (cache / row["max_model_len"]))


CARDS = {"rtx-3090": "rtx3090-24gb", "rtx-4090": "rtx4090-24gb", "rtx-5090": "rtx5090-32gb", "h200": "h200-141gb"}
DTYPES = {"bf16": "fp16", "fp8": "fp8", "int4": "awq"}
PROMPT, AS_JSON = 2048, True
RIDGEPOINT_UTILIZATION = 0.90  # not a parameter of its functions


def ridgepoint(config: dict[str, Any], row: dict[str, Any]) -> float:
    core = importlib.import_module("ridgepoint._core")
    dtype = DTYPES[row["weights"]]
    full = sum(kind == "full_attention" for kind in config["layer_types"])
    heads, kv_heads, layers = (
        config[name] for name in ("num_attention_heads", "num_key_value_heads", "num_hidden_layers")
    )
    shape = (layers, full, config["hidden_size"], row["parameters"], row["parameters"], "gqa", config["head_dim"])
    cache = "fp8" if value_bytes(row) == 1 else "fp16"
    asked = (CARDS[row["hardware"]], row["gpus"], "vllm", dtype, cache, row["max_model_len"], PROMPT, AS_JSON)
    found = json.loads(core.fit_shape("row", *shape, heads, kv_heads, 0, 0, *asked))
    pool = found["memory"]["kv_pool_bytes"]["best"]
    pool += (row["gpu_memory_utilization"] - RIDGEPOINT_UTILIZATION) * row["visible_bytes"] * row["gpus"]
    return float(pool / (found["capacity"]["bytes_per_seq"] / found["capacity"]["ctx"]))


def llm_mem_planner(config: dict[str, Any], row: dict[str, Any]) -> float:
    module = importlib.import_module("llm_mem_planner.cli")
    dims = module.load_dims(config)
    if not dims.kv_lora_rank + dims.qk_rope_head_dim:
        raise ValueError("its cache formula knows latent attention (MLA) only")
    cache = module.estimate_kv_cache_gib(dims, batch=1, seq_len=row["max_model_len"], kv_dtype_bytes=value_bytes(row))
    return float((budget(row) - row["weights_bytes"]) / (cache * GIB / row["max_model_len"]))


def ggufit(config: dict[str, Any], row: dict[str, Any]) -> float:
    module = importlib.import_module("ggufit.calculator")
    bits = {"q4_0": 4.5, "q8_0": 8.5, "f16": 16}[row["cache_type"]]
    model = {
        "layers": config["num_hidden_layers"],
        "num_key_value_heads": config["num_key_value_heads"],
        "head_dim": config["head_dim"],
        "attention_family": "gqa",
    }
    cache = module.kv_cache_gb(model, row["context"], 1, bits)
    return float(module.gpu_vram_needed(row["weights_bytes"] / GIB, cache) * 1024)


PEERS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], float], str]] = {
    "hf-mem": (hf_mem, "tokens = (utilization x visible memory - file size) / its cache bytes a token"),
    "kvfit": (kvfit, "tokens = its rank budget less its weights, over its state a sequence, x context"),
    "ridgepoint": (ridgepoint, "tokens = its best pool, moved to the row's utilization, over its bytes a token"),
    "modelinfo-cli": (modelinfo, "its max_serving_capacity in vLLM mode"),
    "hf-vram-calc": (
        hf_vram_calc,
        "tokens = (utilization x visible memory - its inference memory) / its cache a token",
    ),
    "llm-mem-planner": (
        llm_mem_planner,
        "tokens = (utilization x visible memory - file size) / its cache bytes a token",
    ),
}


def ask(
    function: Callable[..., float], config: dict[str, Any], rows: list[dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the peer's numbers by row, and why it gave none for the others."""
    given, refused = {}, {}
    for row in rows:
        try:
            given[row["id"]] = function(config, row)
        except Exception as error:  # whatever a peer raises is its answer
            refused[row["id"]] = f"{type(error).__name__}: {error}"[:160]
    return given, refused


def main() -> None:
    question = json.load(sys.stdin)
    config, answers = question["config"], {}
    for name, (function, how) in PEERS.items():
        given, refused = ask(function, config, question["rows"])
        answers[name] = {"version": importlib.metadata.version(name), "how": how, "tokens": given, "not_run": refused}
    given, refused = ask(ggufit, config, question["gguf"])
    how = "MiB = its gpu_vram_needed of the file size and its cache"
    answers["ggufit"] = {"version": importlib.metadata.version("ggufit"), "how": how, "mib": given, "not_run": refused}
    json.dump(answers, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
