"""Fit the cost of a decoding step from the evidence, say how well it predicts steps it has not seen, and check it.

    .venv/bin/python gpu/fit_steps.py            print the coefficients, the errors, and the check on other rigs

Non-negative least squares on relative errors; every boot is left out once, with a second boot of it, to get the band.
The check scales it to two RTX 3090 by memory rate and compares with decode rates that others published with their
accepted length.
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

AGAIN: Final = "-second-boot"
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


def fitted(catalog: Catalog) -> tuple["np.ndarray[Any, Any]", list[tuple[str, float, float, float]]]:
    """Return the coefficients, and of every setting: words, milliseconds, error of the fit, error without its boot."""
    items = measured(catalog)
    rows, steps = [features(work) for _, _, work, _ in items], [step for *_, step in items]
    found, errors = solve(rows, steps), []
    for row, words, work, step in items:
        # A second boot of a setting is no boot that the fit has not seen.
        others = [i for i, item in enumerate(items) if item[0].removesuffix(AGAIN) != row.removesuffix(AGAIN)]
        without = solve([rows[i] for i in others], [steps[i] for i in others])
        seen, unseen = (float(np.dot(features(work), values)) / step - 1 for values in (found, without))
        errors.append((words, step, seen, unseen))
    return found, errors


def model_of(found: "np.ndarray[Any, Any]", band: float) -> StepModel:
    """Return the coefficients as the catalogue has them."""
    copy = next(fact["median_bytes_s"] for line in read_evidence() for fact in line["facts"] if fact["fact"] == "copy")
    return StepModel(
        id="h200-bf16-graphs",
        hardware="h200",
        compute=("9.0",),
        engine_versions=("0.33.0",),
        weights=("bf16",),
        families=("qwen3_5",),
        copy_bytes_s=copy,
        share=float(1e12 / found[0] / copy),
        fixed_ms=float(found[1]),
        token_us=float(found[2]),
        pass_ms=float(found[3]),
        split_ms=float(found[4]),
        band=band,
        source="gpu/fit_steps.py",
    )


def lines(catalog: Catalog) -> list[str]:
    """Return the fit as lines of Markdown."""
    found, errors = fitted(catalog)
    unseen = [abs(error) for *_, error in errors]
    model = model_of(found, max(unseen))
    text = ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, found, strict=True))
    return [
        f"Coefficients: {text}; that is {model.share:.0%} of the measured copy rate.",
        f"Without its own boot: median error {np.median(unseen):.1%}, worst {max(unseen):.1%}, {len(errors)} settings.",
        "",
        "| setting | step ms | fitted | its boot left out |",
        "|---|---|---|---|",
        *(f"| {words} | {step:.2f} | {seen:+.1%} | {error:+.1%} |" for words, step, seen, error in errors),
        "",
        "The same coefficients scaled by memory rate to two RTX 3090, against published rates:",
        "",
        "| tier | step ms | accepted length | tok/s by the model | published prose to code | off by |",
        "|---|---|---|---|---|---|",
        *check(catalog, model),
    ]


def main() -> None:
    """Print it."""
    print("\n".join(lines(load_catalog())))


# Published decode rates with the accepted length of the same rows (club-3090 BENCHMARKS rows, 2x RTX 3090).
PUBLISHED: Final = (
    ("vllm/qwen38-27b-dual-fast", 4.08, (74.9, 103.5)),
    ("vllm/qwen38-27b-dual-ultrafast", 3.6, (132.1, 227.4)),
    ("vllm/qwen38-27b-dual-max", 2.62, (67.39, 85.75)),
)


def check(catalog: Catalog, model: StepModel) -> list[str]:
    """Return rows of a table: the model scaled to RTX 3090 beside what was published."""
    record = catalog.hardware["rtx-3090"]
    rate = model.copy_bytes_s * record.bandwidth_bytes_s / catalog.hardware[model.hardware].bandwidth_bytes_s
    rows = []
    for slug, accepted, published in PUBLISHED:
        inputs = vllm_inputs(catalog, resolve(catalog, slug, Layers()))
        seconds = step_seconds(model, step_work(inputs, batch=1, context_tokens=1000), rate)
        off = [accepted / seconds / value - 1 for value in published]
        rows.append(
            f"| {slug} | {1000 * seconds:.1f} | {accepted} | {accepted / seconds:.0f} "
            f"| {published[0]} to {published[1]} | {off[0]:+.0%} to {off[1]:+.0%} |"
        )
    return rows


if __name__ == "__main__":
    main()
