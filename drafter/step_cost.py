"""What a drafted step costs on this processor, with random weights and a simulated acceptance length.

    python -m drafter.step_cost TARGET.gguf [--layers 1,2] [--blocks 4,6,8] [--vocab 8192,0] [--length 3]

Each row is one server process with llama.cpp's own `synth_len`; a draft vocabulary of 0 is the target's whole head.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from drafter.gguf_file import tensor_shapes, write_gguf
from drafter.shape import Shape

_CHILD = """
import json, sys, urllib.request, xllamacpp as x
o = json.loads(sys.argv[1])
p = x.CommonParams(); p.model.path = o["target"]; p.n_ctx = 2048; p.n_parallel = 1; p.ui = False; p.fit_params = False
p.hostnames = ["127.0.0.1"]; p.port = o["port"]
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = o["threads"]
if o["draft"]:
    s = p.speculative; s.types = [x.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH]
    s.draft.mparams.path = o["draft"]; s.draft.n_max = o["depth"]; s.draft.p_min = o.get("p_min", 0.0)
    s.draft.cpuparams.n_threads = s.draft.cpuparams_batch.n_threads = 1  # as redline serves it
    if o["length"]: s.synth_len = o["length"]
server = x.Server(p)
best = None
for _ in range(o["repeats"]):
    body = {"prompt": o["prompt"], "n_predict": 64, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    url = server.listening_address + "/completion"
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    answer = json.load(urllib.request.urlopen(asked, timeout=300))
    t = answer["timings"]; steps = t["predicted_n"] - t.get("draft_n_accepted", 0)
    row = {"ms_step": t["predicted_ms"] / steps, "length": t["predicted_n"] / steps, "tok_s": t["predicted_per_second"]}
    best = row if best is None or row["ms_step"] < best["ms_step"] else best
print("ROW " + json.dumps(best), flush=True)
import os; os._exit(0)
"""


def measure(
    target: Path, draft: Path | None, depth: int, length: float, threads: int, repeats: int = 3
) -> dict[str, float]:
    """Return the fastest of a few answers: milliseconds a step, tokens a step, tokens a second."""
    options = {
        "target": str(target), "draft": str(draft) if draft else "", "depth": depth, "length": length,
        "threads": threads, "repeats": repeats, "port": 18431, "prompt": "The sea was calm and",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, json.dumps(options)], capture_output=True, text=True, timeout=600, check=False,
        env={"OMP_WAIT_POLICY": "passive"},
    )  # fmt: skip
    rows = [line for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if not rows:
        raise SystemExit(done.stderr[-3000:])
    return dict(json.loads(rows[0][4:]))


def random_drafter(path: Path, shape: Shape, target: Path, whole_head: bool, matrix_type: str) -> None:
    """Write a drafter with random weights."""
    import numpy as np

    rng = np.random.default_rng(7)
    state = {name: rng.standard_normal(size).astype("float32") * 0.02 for name, size in tensor_shapes(shape).items()}
    write_gguf(
        path, shape, state, target, None if whole_head else list(range(shape.draft_vocab)), matrix_type=matrix_type
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("--layers", default="1,2")
    parser.add_argument("--blocks", default="8,4")
    parser.add_argument("--vocab", default="8192,0")
    parser.add_argument("--length", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--matrix", default="Q4_0")
    options = parser.parse_args()
    plain = measure(options.target, None, 0, 0, options.threads)
    print(f"no drafter: {plain['ms_step']:.1f} ms a token", flush=True)
    for layers in map(int, options.layers.split(",")):
        for block in map(int, options.blocks.split(",")):
            for vocab in map(int, options.vocab.split(",")):
                shape = Shape(layers=layers, block=block, rank=32, draft_vocab=vocab or 49152)
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "draft.gguf"
                    random_drafter(path, shape, options.target, vocab == 0, options.matrix)
                    row = measure(options.target, path, shape.depth, min(options.length, block), options.threads)
                    again = measure(options.target, None, 0, 0, options.threads, 2)["ms_step"]
                print(
                    f"layers {layers} block {block} head {vocab or 'target'}: {row['ms_step']:.1f} ms a step, "
                    f"{row['length']:.2f} tokens; plain {again:.1f}; breaks even at {row['ms_step'] / again:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
