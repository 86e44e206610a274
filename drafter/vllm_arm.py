"""One vLLM engine behind a pipe: a JSON request a line in, a JSON answer a line out. Knows nothing of other arms.

    python -m drafter.vllm_arm '{"target": FOLDER, "drafter": FOLDER or null, "depth": 7, "eager": false, "seed": 0}'

vLLM prints where it likes: answers go to the standard output as it was at the start, all else to the error output.
"""

import json
import os
import sys
import time
from typing import Any, TextIO


def private_output() -> TextIO:
    """Keep the standard output for answers; whatever prints from now on goes to the error output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def make_engine(options: dict[str, Any]) -> Any:
    """Return the engine; all arms get the same settings but for drafting, and a seed each: sampled
    answers of one seed would be the same ones again, and not a second sample."""
    from vllm import LLM

    drafting = None
    if options["drafter"]:
        drafting = {"method": "dflash", "model": options["drafter"], "num_speculative_tokens": options["depth"]}
    return LLM(
        options["target"], skip_tokenizer_init=True, max_model_len=2048, gpu_memory_utilization=0.1,
        kv_cache_memory_bytes=2**31, max_num_seqs=1, speculative_config=drafting, disable_log_stats=False,
        enable_prefix_caching=False, enforce_eager=options["eager"], seed=options["seed"],
    )  # fmt: skip


def counters(engine: Any) -> dict[str, Any]:
    """Return vLLM's drafting counters."""
    return {
        metric.name.split(":")[-1]: list(metric.values) if hasattr(metric, "values") else metric.value
        for metric in engine.get_metrics()
        if "spec_decode" in metric.name and (hasattr(metric, "value") or hasattr(metric, "values"))
    }


def answer(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request of token lists, one after the other."""
    from vllm import SamplingParams

    sampling = SamplingParams(
        temperature=request.get("temperature", 0.0), max_tokens=request["count"], detokenize=False,
        stop_token_ids=[2], logprobs=request.get("logprobs"),
    )  # fmt: skip
    began, answers, decode_s = time.monotonic(), [], 0.0
    best: list[float] = []
    for ids in request["ids"]:
        output = engine.generate([{"prompt_token_ids": ids}], sampling, use_tqdm=False)[0]
        answers.append(list(output.outputs[0].token_ids))
        if output.metrics is not None:
            decode_s += output.metrics.last_token_ts - output.metrics.first_token_ts
        if request.get("logprobs"):
            best = sorted((float(one.logprob) for one in output.outputs[0].logprobs[0].values()), reverse=True)[:2]
    whole_s = time.monotonic() - began
    return {"answers": answers, "decode_s": decode_s, "whole_s": whole_s, "best": best, "counters": counters(engine)}


def main() -> None:
    answers, began = private_output(), time.monotonic()
    engine = make_engine(json.loads(sys.argv[1]))
    print(json.dumps({"ready_s": round(time.monotonic() - began, 1)}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            found = answer(engine, json.loads(line))
        except Exception as error:
            found = {"error": repr(error)}
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
