"""Does vLLM draft with the exported folder? Greedy answers, acceptance by position and decode rate, an arm a process.

    python -m drafter.vllm_check plain|eight|four|compare TARGET.gguf FOLDER PROMPTS.yaml

FOLDER holds NAME.gguf; the Hugging Face folders are made beside it, the target's as well (its served weights in
bfloat16). Answers and figures are left in FOLDER/vllm-NAME.json.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

TOKENS = 160


def write_target(source: Path, folder: Path) -> Any:
    """Write the target as a Hugging Face folder without a tokenizer; return its tokenizer."""
    import torch

    from drafter.hf_folder import write_safetensors
    from drafter.target import Target

    target = Target(source, torch.device("cpu"), torch.float32)
    if (folder / "model.safetensors").is_file():
        return target.tokenizer
    folder.mkdir(parents=True, exist_ok=True)
    names = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    names |= {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    names |= {f"attn_{k}": f"self_attn.{k[0]}_proj" for k in ("q", "k", "v", "output")}
    state = {}
    for name, values in target.weights.items():
        if name.startswith("blk."):
            _, layer, kind, _ = name.split(".")
            state[f"model.layers.{layer}.{names[kind]}.weight"] = values.numpy()
    state["model.embed_tokens.weight"] = target.weights["token_embd.weight"].numpy()
    state["model.norm.weight"] = target.weights["output_norm.weight"].numpy()
    write_safetensors(folder / "model.safetensors", state)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": target.hidden,
        "num_hidden_layers": target.layers, "num_attention_heads": target.heads, "head_dim": target.head_dim,
        "num_key_value_heads": target.kv_heads,
        "intermediate_size": state["model.layers.0.mlp.up_proj.weight"].shape[0],
        "vocab_size": state["model.embed_tokens.weight"].shape[0], "rms_norm_eps": target.eps, "hidden_act": "silu",
        "rope_theta": target.rope_base, "rope_parameters": {"rope_type": "default", "rope_theta": target.rope_base},
        "max_position_embeddings": 8192, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2,
        "attention_bias": False, "mlp_bias": False, "dtype": "bfloat16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return target.tokenizer


def serve(arm: str, source: Path, folder: Path, prompts: Path) -> None:
    """Answer every held-out prompt greedily, one at a time, and write what was seen."""
    from drafter.evaluate import held_out
    from drafter.hf_folder import write_folder
    from drafter.target import chat

    tokenizer = write_target(source, Path("/tmp/train/target-hf"))
    drafting: dict[str, Any] | None = None
    if arm != "plain":
        made = Path("/tmp/train") / f"{arm}-hf"
        print("folder", write_folder(folder / f"{arm}.gguf", made))
        depth = json.loads((made / "config.json").read_text(encoding="utf-8"))["block_size"] - 1
        drafting = {"method": "dflash", "model": str(made), "num_speculative_tokens": depth}
    from vllm import LLM, SamplingParams

    engine = LLM(
        "/tmp/train/target-hf", skip_tokenizer_init=True, max_model_len=4096, gpu_memory_utilization=0.4,
        max_num_seqs=1, speculative_config=drafting, disable_log_stats=False, enable_prefix_caching=False, seed=0,
    )  # fmt: skip
    found: dict[str, Any] = {"arm": arm, "classes": {}}
    greedy = SamplingParams(temperature=0.0, max_tokens=TOKENS, detokenize=False, stop_token_ids=[2])
    for name, texts in held_out(prompts).items():
        ids = [tokenizer.encode(chat(text)).ids for text in texts]
        engine.generate([{"prompt_token_ids": ids[0]}], greedy, use_tqdm=False)
        before, began = counters(engine), time.monotonic()
        answers = [
            list(engine.generate([{"prompt_token_ids": i}], greedy, use_tqdm=False)[0].outputs[0].token_ids)
            for i in ids
        ]
        took, after = time.monotonic() - began, counters(engine)
        found["classes"][name] = {
            "tokens_s": sum(map(len, answers)) / took,
            "counters": {key: _less(after[key], before.get(key, 0)) for key in after},
            "answers": answers,
        }
        print(name, round(found["classes"][name]["tokens_s"], 1), found["classes"][name]["counters"], flush=True)
        (folder / f"vllm-{arm}.json").write_text(json.dumps(found), encoding="utf-8")


def _less(now: Any, then: Any) -> Any:
    if isinstance(now, list):
        return [a - b for a, b in zip(now, then or [0] * len(now), strict=True)]
    return now - then


def counters(engine: Any) -> dict[str, Any]:
    """Return vLLM's drafting counters."""
    return {
        metric.name.split(":")[-1]: list(metric.values) if hasattr(metric, "values") else metric.value
        for metric in engine.get_metrics()
        if "spec_decode" in metric.name and (hasattr(metric, "value") or hasattr(metric, "values"))
    }


def compare(folder: Path) -> None:
    """Print ratios and differences of the arms."""
    plain = json.loads((folder / "vllm-plain.json").read_text(encoding="utf-8"))["classes"]
    for arm in ("eight", "four"):
        if not (folder / f"vllm-{arm}.json").is_file():
            continue
        drafted = json.loads((folder / f"vllm-{arm}.json").read_text(encoding="utf-8"))["classes"]
        for name, row in drafted.items():
            pairs = list(zip(row["answers"], plain[name]["answers"], strict=True))
            same = sum(a == b for a, b in pairs)
            parts = [next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), -1) for a, b in pairs]
            ratio = row["tokens_s"] / plain[name]["tokens_s"]
            print(json.dumps({"arm": arm, "class": name, "ratio": round(ratio, 3), "same": same, "of": len(pairs),
                              "first_difference": parts, **row["counters"]}))  # fmt: skip


if __name__ == "__main__":
    command, source, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if command == "compare":
        compare(folder)
    else:
        serve(command, source, folder, Path(sys.argv[4]))
