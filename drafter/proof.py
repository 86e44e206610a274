"""Does llama.cpp answer the same with a drafter as without, and what does it accept? On the embedded engine itself.

    python -m drafter.proof DRAFTER.gguf TARGET.gguf [--prompts 200] [--tokens 96] [--samples 300] [--least 0.0]
    python -m drafter.proof DRAFTER.gguf TARGET.gguf --depths 7,6,5,3,15     (the loss that the depth guard prevents)

Greedy answers of both arms are compared token by token; a difference is shown with the gap between the two best tokens
there, since a batch of several tokens is summed in another order than one. Sampled short answers are compared by a
chi-square test. Acceptance is from llama.cpp's own counters.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from drafter.prompts import training_prompts

MEASURED = Path(__file__).parent.parent / "src/redline/workload/data/prompts.yaml"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
UNSEEN_SEED = 7_000_077  # training draws its prompts by seeds from 1000 up


def chat(text: str) -> str:
    """Return a question in the model's own chat form."""
    return f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


@contextmanager
def served(target: Path, draft: Path | None, port: int, *, depth: int = 7, least: float = 0.0) -> Iterator[str]:
    """Serve with redline's own worker; yield the address."""
    options = ["--model", target, "--alias", "m", "--port", port, "--ctx", 2048, "--threads", os.cpu_count() or 1]
    if draft:
        options += [
            "--draft-model",
            draft,
            "--draft-type",
            "draft-dflash",
            "--draft-max",
            depth,
            "--draft-least",
            least,
        ]
    argv = [sys.executable, "-P", "-m", "redline.engine.worker", *map(str, options)]
    worker = subprocess.Popen(
        argv, env={**os.environ, "OMP_WAIT_POLICY": "passive"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if worker.poll() is not None:
                raise SystemExit("the worker ended while it loaded")
            try:
                if json.load(urllib.request.urlopen(f"{address}/health", timeout=5))["status"] == "ok":
                    break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        worker.terminate()
        worker.wait(20)


def ask(address: str, prompt: str | list[int], count: int, **more: object) -> dict[str, Any]:
    """Return llama.cpp's own completion."""
    body = {
        "prompt": prompt,
        "n_predict": count,
        "temperature": 0,
        "return_tokens": True,
        "cache_prompt": False,
        **more,
    }
    asked = urllib.request.Request(
        f"{address}/completion", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    answer: dict[str, Any] = json.load(urllib.request.urlopen(asked, timeout=300))
    return answer


def counted(address: str) -> dict[str, float]:
    """Return the drafting counters by name."""
    text = urllib.request.urlopen(f"{address}/metrics", timeout=30).read().decode()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if "spec_decode" in line and not line.startswith("#")]
    return {name.split(":", 1)[1]: float(value) for name, value in lines}


def prompts_by_class(count: int) -> dict[str, list[str]]:
    """Return redline's measuring prompts, and fresh ones of the training's kinds up to `count` in all."""
    loaded = yaml.safe_load(MEASURED.read_text(encoding="utf-8"))
    found = {name: [text.strip() for text in loaded[name]] for name in ("prose", "code", "chat", "edit", "structured")}
    found["fresh"] = fresh(count - sum(map(len, found.values())))
    return found


def fresh(count: int) -> list[str]:
    """Return prompts of the training's kinds that no training drew."""
    return list(dict.fromkeys(training_prompts(UNSEEN_SEED, 4 * max(0, count))))[: max(0, count)]


def greedy(target: Path, draft: Path, options: argparse.Namespace) -> None:
    """Compare greedy answers, and print acceptance by class and position."""
    same = total = 0
    classes = prompts_by_class(options.prompts)
    with served(target, None, 18441) as plain, served(target, draft, 18442, least=options.least) as drafted:
        for name, texts in classes.items():
            before, own_ms, other_ms, tokens = counted(drafted), 0.0, 0.0, 0
            for number, text in enumerate(texts[: options.few]):
                a = ask(plain, chat(text), options.tokens)
                b = ask(drafted, chat(text), options.tokens)
                total, same = total + 1, same + (a["tokens"] == b["tokens"])
                own_ms, other_ms = own_ms + b["timings"]["predicted_ms"], other_ms + a["timings"]["predicted_ms"]
                tokens += len(b["tokens"])
                if a["tokens"] != b["tokens"]:
                    print(json.dumps({"class": name, "prompt": number, **difference(plain, text, a, b)}), flush=True)
            row = acceptance(before, counted(drafted))
            print(json.dumps({"class": name, **row, "ratio": round(other_ms / max(own_ms, 1e-9), 3)}), flush=True)
    print(json.dumps({"greedy_same": same, "of": total}), flush=True)


def acceptance(before: dict[str, float], after: dict[str, float]) -> dict[str, object]:
    """Return tokens a step and accepted shares by position from counters."""
    delta = {name: value - before.get(name, 0) for name, value in after.items()}
    drafts = delta.get("spec_decode_num_drafts_total", 0) or 1
    accepted = delta.get("spec_decode_num_accepted_tokens_total", 0)
    by_position = [round(v / drafts, 3) for n, v in sorted(delta.items()) if "per_pos" in n and v]
    drafted = delta.get("spec_decode_num_draft_tokens_total", 0)
    return {
        "length": round(1 + accepted / drafts, 3),
        "drafted": round(drafted / drafts, 2),
        "drafts": int(drafts),
        "by_position": by_position,
    }


def difference(plain: str, text: str, a: dict[str, Any], b: dict[str, Any]) -> dict[str, object]:
    """Return where two answers part and how far apart the two best tokens are there."""
    pairs = zip(a["tokens"], b["tokens"], strict=False)
    at = next((number for number, (x, y) in enumerate(pairs) if x != y), min(len(a["tokens"]), len(b["tokens"])))
    asked = urllib.request.Request(
        f"{plain}/tokenize",
        json.dumps({"content": chat(text), "parse_special": True}).encode(),
        {"content-type": "application/json"},
    )
    ids = json.load(urllib.request.urlopen(asked, timeout=30))["tokens"] + a["tokens"][:at]
    best = ask(plain, ids, 1, n_probs=2)["completion_probabilities"][0]["top_logprobs"]
    return {"differs_at": at, "gap": round(best[0]["logprob"] - best[1]["logprob"], 4)}


def sampled(target: Path, draft: Path, options: argparse.Namespace) -> None:
    """Compare short answers at temperature 1, token by token, by a chi-square test with permuted arms."""
    for text in ("Tell me a word.", "Write one sentence about the sea."):
        arms: list[list[list[int]]] = []
        for number, path in enumerate((None, draft)):
            with served(target, path, 18443 + number, least=options.least) as address:
                seeds = range(options.samples * number, options.samples * (number + 1))
                arms.append([ask(address, chat(text), 4, temperature=1.0, seed=seed)["tokens"] for seed in seeds])
        for place in range(4):
            tokens = [[answer[place] if place < len(answer) else -1 for answer in arm] for arm in arms]
            statistic, share = permuted_chi_square(tokens[0], tokens[1])
            row = {"prompt": text, "token": place + 1, "chi2": round(statistic, 2), "p": round(share, 3)}
            print(json.dumps({**row, "n": [len(arm) for arm in tokens]}), flush=True)


def permuted_chi_square(first: list[int], second: list[int], rounds: int = 2000) -> tuple[float, float]:
    """Return the chi-square statistic of two samples of tokens, and the share of permutations that reach it.

    Permuting keeps the test exact where most tokens were seen once or twice.
    """
    import numpy as np

    _, codes = np.unique(np.array(first + second), return_inverse=True)
    totals = np.bincount(codes)
    expected = totals * len(first) / len(codes)

    def statistic(chosen: Any) -> float:
        seen = np.bincount(chosen, minlength=len(totals))
        other = totals - expected
        return float(((seen - expected) ** 2 / expected).sum() + ((totals - seen - other) ** 2 / other).sum())

    found, rng = statistic(codes[: len(first)]), np.random.default_rng(1)
    more = sum(statistic(rng.permutation(codes)[: len(first)]) >= found - 1e-9 for _ in range(rounds))
    return found, (more + 1) / (rounds + 1)


def depths(target: Path, draft: Path, options: argparse.Namespace) -> None:
    """Print acceptance at depths other than the trained one."""
    texts = prompts_by_class(0)["code"][: options.few]
    for depth in map(int, options.depths.split(",")):
        with served(target, draft, 18445, depth=depth) as address:
            for text in texts:
                ask(address, chat(text), options.tokens)
            print(json.dumps({"depth": depth, **acceptance({}, counted(address))}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafter", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--least", type=float, default=0.0)
    parser.add_argument("--depths", default="")
    options = parser.parse_args()
    if options.depths:
        depths(options.target, options.drafter, options)
    elif options.samples:
        sampled(options.target, options.drafter, options)
    else:
        greedy(options.target, options.drafter, options)


if __name__ == "__main__":
    main()
