"""Does vLLM draft with the exported folder? Greedy identity, acceptance, decode rate, sampling: the arms side by side.

    python -m drafter.vllm_check DRAFTER.gguf TARGET.gguf OUT PROMPTS.yaml --seconds 400

Each arm is an engine of its own (`vllm_arm`); all start at once and then take turns, prompt by prompt, so that what
disturbs the machine disturbs them alike. Arms: `plain`, without a drafter; `eight`, at the trained depth; `three` and
`fifteen`, the same checkpoint at depths that redline's guard refuses. OUT/vllm-check.json is
rewritten after every part.
"""

import argparse
import json
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEPTHS = {"plain": 0, "eight": 7, "three": 3, "fifteen": 15}
TOKENS, FRESH_TOKENS = 160, 96


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


@dataclass(slots=True)
class Arm:
    """A started engine, and its counters when last asked."""

    process: subprocess.Popen[str]
    before: dict[str, Any] = field(default_factory=dict)
    alive: bool = True

    def read(self, until: float) -> dict[str, Any] | None:
        """Return the next answer, or None when the engine ended or said nothing in time: it is then given up."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.1, until - time.monotonic()))
        line = self.process.stdout.readline() if ready else ""
        self.alive = bool(line)
        return json.loads(line) if line else None

    def ask(self, until: float, **request: object) -> dict[str, Any] | None:
        """Return the answer to a request with what the counters moved by, or None."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError:
            self.alive = False
            return None
        found = self.read(until)
        if found is None or "error" in found:
            print("no answer:", found, flush=True)
            return None
        now = found["counters"]
        found["counters"] = {name: _less(value, self.before.get(name)) for name, value in now.items()}
        self.before = now
        return found

    def end(self) -> None:
        """Stop the engine."""
        self.process.kill()
        with self.process:  # closes its pipes and waits
            pass


def _less(now: Any, then: Any) -> Any:
    if isinstance(now, list):
        return [a - b for a, b in zip(now, then or [0] * len(now), strict=True)]
    return now - (then or 0)


def _more(a: Any, b: Any) -> Any:
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b


def start(names: list[str], folders: dict[str, str | None], out: Path, eager: bool) -> dict[str, Arm]:
    """Start engines, all at once."""
    arms = {}
    for name in names:
        options = {"target": folders["target"], "drafter": folders["drafter"] if DEPTHS[name] else None}
        text = json.dumps({**options, "depth": DEPTHS[name], "eager": eager, "seed": list(DEPTHS).index(name)})
        with (out / f"vllm-{name}.log").open("w", encoding="utf-8") as log:
            argv = [sys.executable, "-m", "drafter.vllm_arm", text]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        arms[name] = Arm(process)
    return arms


class Check:
    """What was measured so far, and the engines that measure it."""

    def __init__(self, options: argparse.Namespace) -> None:
        from drafter.hf_folder import write_folder

        self.options, self.began = options, time.monotonic()
        self.until = self.began + options.seconds - 8
        made = options.out / "hf" if options.scratch is None else options.scratch
        self.tokenizer = write_target(options.target, made / "target")
        self.found: dict[str, Any] = {"drafter_sha256": write_folder(options.drafter, made / "drafter"), "parts": {}}
        self.folders: dict[str, str | None] = {"target": str(made / "target"), "drafter": str(made / "drafter")}
        self.arms: dict[str, Arm] = {}

    def start(self) -> None:
        """Start the arms; where compiling takes too long, start the two that matter again without it."""
        names = self.options.arms.split(",")
        for eager in (False, True):
            self.arms = start(names, self.folders, self.options.out, eager)
            limit = self.began + self.options.seconds * (0.45 if not eager else 0.7)
            for name, arm in self.arms.items():
                print(name, "eager" if eager else "compiled", said := arm.read(limit), flush=True)
                self.found[f"ready_s_{name}"] = (said or {}).get("ready_s")
            self.found["eager"] = eager
            if all(self.arms[name].alive for name in ("plain", "eight")):
                return
            self.end()
            names = ["plain", "eight"]
        raise SystemExit("the arms did not start: see vllm-plain.log and vllm-eight.log")

    def end(self) -> None:
        """Stop all arms."""
        for arm in self.arms.values():
            arm.end()

    def greedy(self, part: str, texts: list[str], count: int, names: list[str]) -> None:
        """Give each prompt to each arm, in alternating order, and note rates, acceptance and differences."""
        from drafter.target import chat

        rows: dict[str, list[dict[str, Any]]] = {}
        differences = []
        for number, text in enumerate(texts):
            if time.monotonic() > self.until:
                break
            ids = self.tokenizer.encode(chat(text)).ids
            order = [name for name in names if name in self.arms and self.arms[name].alive]
            answers = {}
            for name in order if number % 2 == 0 else reversed(order):
                if found := self.arms[name].ask(self.until + 5, ids=[ids], count=count):
                    answers[name] = found
            for name, found in answers.items():
                rows.setdefault(name, []).append({**found, "prompt": number})
            if "plain" in answers:
                plain = answers["plain"]["answers"][0]
                for name, found in answers.items():
                    if found["answers"][0] != plain:
                        row = {"arm": name, "prompt": number, **self.difference(ids, plain, found["answers"][0])}
                        differences.append(row)
        summary = {name: self.summary(found, rows.get("plain", [])) for name, found in rows.items()}
        self.found["parts"][part] = {"count": count, "summary": summary, "differences": differences}
        self.found["parts"][part]["rows"] = {
            name: [[r["prompt"], len(r["answers"][0]), r["decode_s"], r["whole_s"]] for r in found]
            for name, found in rows.items()
        }
        self.write()
        for name, values in summary.items():
            print(part, name, json.dumps(values), flush=True)

    def difference(self, ids: list[int], plain: list[int], other: list[int]) -> dict[str, Any]:
        """Return where two answers part and how far apart the two best tokens are there, without a drafter."""
        pairs = zip(plain, other, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(plain), len(other)))
        found = self.arms["plain"].ask(self.until + 5, ids=[ids + plain[:at]], count=1, logprobs=2)
        best = found["best"] if found else []
        return {"differs_at": at, "gap": round(best[0] - best[1], 5) if len(best) == 2 else None}

    @staticmethod
    def summary(rows: list[dict[str, Any]], plain: list[dict[str, Any]]) -> dict[str, Any]:
        """Return rates and acceptance of one arm over one class."""
        tokens = sum(len(row["answers"][0]) - 1 for row in rows)
        decode, whole = sum(row["decode_s"] for row in rows), sum(row["whole_s"] for row in rows)
        total: dict[str, Any] = {}
        for row in rows:
            for name, value in row["counters"].items():
                total[name] = _more(total[name], value) if name in total else value
        drafts = total.get("spec_decode_num_drafts", 0)
        by_prompt = {row["prompt"]: row["answers"] for row in plain}
        return {
            "prompts": len(rows), "tokens": tokens + len(rows),
            "decode_tok_s": round(tokens / decode, 1) if decode else None,
            "whole_tok_s": round((tokens + len(rows)) / whole, 1) if whole else None,
            "same": sum(by_prompt.get(row["prompt"]) == row["answers"] for row in rows),
            "length": round(1 + total["spec_decode_num_accepted_tokens"] / drafts, 3) if drafts else None,
            "drafted": round(total["spec_decode_num_draft_tokens"] / drafts, 2) if drafts else None,
            "by_position": [
                round(v / drafts, 3) for v in total.get("spec_decode_num_accepted_tokens_per_pos", [])
            ] if drafts else None,
        }  # fmt: skip

    def sampled(self, count: int) -> None:
        """Compare short answers at temperature 1, token by token, by a chi-square test with permuted arms."""
        from drafter.proof import permuted_chi_square
        from drafter.target import chat

        for text in ("Tell me a word.", "Write one sentence about the sea."):
            ids = self.tokenizer.encode(chat(text)).ids
            asked = {"ids": [ids] * count, "count": 4, "temperature": 1.0}
            found = [self.arms[name].ask(self.until + 5, **asked) for name in ("plain", "eight")]
            if None in found or time.monotonic() > self.until:
                return
            for place in range(4):
                seen = [[a[place] if place < len(a) else -1 for a in arm["answers"]] for arm in found if arm]
                statistic, share = permuted_chi_square(seen[0], seen[1])
                row = {"prompt": text, "token": place + 1, "chi2": round(statistic, 2), "p": round(share, 3)}
                self.found["parts"].setdefault("sampled", []).append(row)
                print(json.dumps({**row, "n": count}), flush=True)
            self.write()

    def write(self) -> None:
        """Leave what is known."""
        part = self.options.out / "vllm-check.part"
        part.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        part.replace(self.options.out / "vllm-check.json")


def main() -> None:
    from drafter.evaluate import held_out
    from drafter.proof import fresh

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafter", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--arms", default=",".join(DEPTHS))
    parser.add_argument("--scratch", type=Path, default=None, help="where the derived folders go")
    check = Check(parser.parse_args())
    classes = held_out(check.options.prompts)
    try:
        check.start()
        check.greedy("warm-up", classes["chat"][:2], 64, list(DEPTHS))
        for name in ("code", "prose", "chat", "edit", "structured"):
            wrong = ["three", "fifteen"] if name in {"code", "prose"} else []
            check.greedy(name, classes[name], TOKENS, ["plain", "eight", *wrong])
        check.greedy("code again", classes["code"] * 2, TOKENS, ["plain", "eight"])
        check.sampled(200)
        check.greedy("fresh", fresh(200 - sum(map(len, classes.values()))), FRESH_TOKENS, ["plain", "eight"])
        print("done", round(time.monotonic() - check.began, 1), flush=True)
    finally:
        check.end()


if __name__ == "__main__":
    main()
