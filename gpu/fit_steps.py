"""Fit the cost of a decoding step from the evidence, say how well it predicts steps it has not seen, and check it.

    .venv/bin/python gpu/fit_steps.py            print the coefficients as YAML, the errors, and the check on other rigs

Non-negative least squares on relative errors; every boot is left out once to get the band. The check scales it to
two RTX 3090 by memory rate and compares with decode rates that others published with their accepted length.
"""

import sys
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "host")]
import numpy as np
from predict import boot_of

from redline.catalog.load import load_catalog
from redline.catalog.memory import StepModel
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.plan.adapter import vllm_inputs
from redline.plan.boots import inputs_of_boot
from redline.plan.step_time import StepWork, step_seconds, step_work
from redline.settings import Layers
from report import decodes, read_evidence

NAMES: Final = ("ms a GB", "fixed_ms", "token_us", "pass_ms", "split_ms")


def features(work: StepWork) -> list[float]:
    """What the coefficients multiply, in the order of NAMES."""
    return [work.read_bytes / 1e9, 1.0, work.tokens / 1000, float(work.passes), float(work.split)]


def solve(rows: list[list[float]], steps: list[float]) -> "np.ndarray[Any, Any]":
    """Least squares on relative errors; a coefficient that would be negative is left out and the rest fitted again."""
    kept = list(range(len(NAMES)))
    matrix, right = np.array(rows), np.array(steps)
    while True:
        scaled = matrix[:, kept] / right[:, None]
        found, *_ = np.linalg.lstsq(scaled, np.ones(len(right)), rcond=None)
        if (found >= 0).all():
            full = np.zeros(len(NAMES))
            full[kept] = found
            return full
        kept.pop(int(np.argmin(found)))


def measured(catalog: Catalog) -> list[tuple[str, str, StepWork, float]]:
    """Return row, words, work and milliseconds of every measured decode with CUDA graphs and 16-bit weights."""
    found = []
    for entry in decodes(read_evidence()):
        asked, fact = entry["line"]["asked"], entry["fact"]
        if asked["compile"] or asked["checkpoint"].endswith("w4a16"):
            continue
        inputs = inputs_of_boot(catalog, boot_of(entry["line"]))
        context = fact["prompt"] + fact["tokens"] // fact["batch"] // 2
        work = step_work(inputs, batch=fact["batch"], context_tokens=context)
        words = f"{entry['line']['row']} batch {fact['batch']} context {fact['prompt']} length {fact['acceptance']}"
        found.append((entry["line"]["row"], words, work, sum(entry["steps"]) / len(entry["steps"])))
    return found


def main() -> None:
    """Fit, leave out, check."""
    catalog = load_catalog()
    items = measured(catalog)
    rows, steps = [features(work) for _, _, work, _ in items], [step for *_, step in items]
    found = solve(rows, steps)
    print(dict(zip(NAMES, found.round(4).tolist(), strict=True)))
    unseen = []
    for row, words, work, step in items:
        others = [i for i, item in enumerate(items) if item[0] != row]
        fitted = solve([rows[i] for i in others], [steps[i] for i in others])
        error = float(np.dot(features(work), fitted)) / step - 1
        seen = float(np.dot(features(work), found)) / step - 1
        unseen.append(abs(error))
        print(f"{words:60} {step:7.2f} ms  fitted {seen:+6.1%}  left out {error:+6.1%}")
    print(f"median {np.median(unseen):.1%} worst {max(unseen):.1%}")
    copy = next(fact["median_bytes_s"] for line in read_evidence() for fact in line["facts"] if fact["fact"] == "copy")
    model = StepModel(
        id="h200-bf16",
        hardware="h200",
        compute=("9.0",),
        engine_versions=("0.33.0",),
        weights=("bf16",),
        copy_bytes_s=copy,
        share=float(1e12 / found[0] / copy) if found[0] else 1.0,
        fixed_ms=float(found[1]),
        token_us=float(found[2]),
        pass_ms=float(found[3]),
        split_ms=float(found[4]),
        band=max(unseen),
        source="gpu/fit_steps.py",
    )
    print(model)
    check(catalog, model)


# Published decode rates with the accepted length of the same rows (club-3090 BENCHMARKS rows, 2x RTX 3090).
PUBLISHED: Final = (
    ("vllm/qwen38-27b-dual-fast", 4.08, (74.9, 103.5)),
    ("vllm/qwen38-27b-dual-ultrafast", 3.6, (132.1, 227.4)),
    ("vllm/qwen38-27b-dual-max", 2.62, (67.39, 85.75)),
)


def check(catalog: Catalog, model: StepModel) -> None:
    """Scale the model to RTX 3090 and compare."""
    record = catalog.hardware["rtx-3090"]
    rate = model.copy_bytes_s * record.bandwidth_bytes_s / catalog.hardware[model.hardware].bandwidth_bytes_s
    for slug, accepted, published in PUBLISHED:
        inputs = vllm_inputs(catalog, resolve(catalog, slug, Layers()))
        seconds = step_seconds(model, step_work(inputs, batch=1, context_tokens=1000), rate)
        off = [accepted / seconds / value - 1 for value in published]
        print(
            f"{slug}: step {1000 * seconds:.1f} ms, {accepted / seconds:.0f} tok/s at {accepted}; published "
            f"{published[0]} to {published[1]}: {off[0]:+.0%} to {off[1]:+.0%}"
        )


if __name__ == "__main__":
    main()
