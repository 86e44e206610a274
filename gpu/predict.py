"""Write what `redline plan`'s own code says of every boot of a plan of experiments, before any of them is run.

    .venv/bin/python gpu/predict.py [gpu/h200.yaml]

One line of JSON a boot goes beside the plan, `h200.predictions.jsonl`: pool, block and need, and the bytes left
for the cache with their bounds. A row that has a line keeps it: a prediction is not made twice.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent / "host"))
from rows import KV_NAMES, read_plan

from redline.catalog.load import load_catalog
from redline.catalog.memory import Boot, BootDrafter
from redline.catalog.types import Catalog
from redline.plan.boots import inputs_of_boot, loaded_bytes
from redline.plan.cards import cards_of, rig_of_words
from redline.plan.geometry import pool_tokens
from redline.plan.inputs import geometry_of
from redline.plan.rules import rules_of
from redline.plan.vllm import estimate_overhead, plan_vllm

ENGINE: Final = "0.33.0"
# Five layers of 5,120 x 17,408 and the selector, 16 and 4 bits a weight; the codebooks stay 16 bits on every GPU.
DRAFTER_BYTES: Final = {"": 3_850_000_000, "drafter-8-w4a16": 1_200_000_000, "drafter-16": 3_850_000_000}
CODEBOOK_BYTES: Final = 254_279_680


def boot_of(row: dict[str, Any]) -> Boot:
    """Return what a row asks for as a boot of the catalogue."""
    asked = row["asked"]
    block = asked["drafter"] == "dflash2"
    return Boot(
        id=row.get("id") or row["row"],
        model="qwen3.8-27b",
        hardware="h200",
        gpus=asked["tp"],
        engine="vllm",
        engine_version=ENGINE,
        weights="bf16",
        weights_bytes=None,
        tensor_parallel=asked["tp"],
        max_model_len=asked["context"],
        max_num_seqs=asked["seqs"],
        batched_tokens=asked["batched"],
        kv_cache_dtype=KV_NAMES[asked["kv"]],
        drafter=asked["drafter"],
        spec_n=asked["depth"],
        state_dtype=asked["state"],
        gdn_prefill=asked["prefill"] or "flashinfer",
        date="",
        source="",
        gpu_memory_utilization=asked["utilization"],
        vision=False,
        graphs=asked["graphs"],
        prefix_caching=asked["prefix_caching"],
        block_size=asked["block_size"],
        draft=BootDrafter(
            layers=5,
            kv_heads=8,
            head_dim=128,
            window=2048,
            file_bytes=DRAFTER_BYTES[asked["checkpoint"] if asked["checkpoint"] in DRAFTER_BYTES else ""],
            replicated_bytes=CODEBOOK_BYTES,
        )
        if block
        else None,
    )


def predict(catalog: Catalog, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's prediction."""
    boot = boot_of(row)
    inputs = inputs_of_boot(catalog, boot)
    cards = cards_of(catalog, rig_of_words(catalog, f"{boot.tensor_parallel}xh200"))
    fit = plan_vllm(catalog, inputs, cards)
    geometry = geometry_of(inputs, rules_of(catalog, inputs, cards[0].compute)[0])
    overhead = estimate_overhead(catalog, inputs, cards[0])
    requested = round(boot.gpu_memory_utilization * cards[0].total_bytes)  # type: ignore[operator]
    assert fit.pool_blocks is not None
    return {
        "row": row["id"],
        "verdict": fit.verdict,
        "block_tokens": fit.block_tokens,
        "pool_block_bytes": fit.pool_block_bytes,
        "need_blocks": fit.need_blocks,
        "pool_blocks": fit.pool_blocks,
        "pool_tokens": pool_tokens(geometry, fit.pool_blocks, boot.max_model_len),
        "loaded_bytes": loaded_bytes(inputs),
        "overhead_bytes": [overhead.low_bytes, overhead.best_bytes, overhead.high_bytes],
        "available_bytes": [
            requested - loaded_bytes(inputs) - value
            for value in (overhead.high_bytes, overhead.best_bytes, overhead.low_bytes)
        ],
        "groups": [[group.name, group.layers, group.count, group.block_tokens] for group in geometry.groups],
        "rules": fit.rules,
    }


def main() -> int:
    """Write or check the predictions of a plan."""
    path = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "h200.yaml"
    catalog = load_catalog()
    rows = [row for row in read_plan(path)["rows"] if row["kind"] == "boot" and row["asked"]["shards"] == 1]
    target = path.with_suffix(".predictions.jsonl")
    stated = target.read_text(encoding="utf-8").splitlines() if target.is_file() else []
    made = {json.loads(line)["row"]: line for line in stated}
    text = "".join((made.get(row["id"]) or json.dumps(predict(catalog, row))) + "\n" for row in rows)
    target.write_text(text, encoding="utf-8")
    print(f"{len(rows)} predictions in {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
