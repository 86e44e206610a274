"""How exact the planner is: every recorded boot with what is predicted for it, and other estimators on the same rows.

    .venv/bin/python benchmarks/planner.py                    # the tables, and whether the targets hold (exit 1 if not)
    .venv/bin/python benchmarks/planner.py --write            # the same, into docs/planner.md
    .venv/bin/python benchmarks/planner.py --peers            # asks the other estimators anew (network; a minute)

End to end means: from the settings alone, with every term fitted without the row that is predicted.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from redline.catalog.load import load_catalog
from redline.catalog.memory import Boot, GgufBoot
from redline.catalog.types import Catalog
from redline.plan.boots import BootPrediction, calibrate, check_boot, predict_boot
from redline.plan.cards import find_hardware, rig_of_words
from redline.plan.dispatch import plan_tier
from redline.plan.geometry import boots
from redline.plan.gguf import GgufInputs, device_terms
from redline.plan.weights import parameter_counts
from redline.units import GIB, MIB

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = ROOT / "docs" / "planner.md"
PEERS: Final = ROOT / "benchmarks" / "planner_peers"
MODEL: Final = "qwen3.8-27b"
MEDIAN_TARGET, WORST_TARGET, PEER_FACTOR = 0.015, 0.04, 5.0
UNEXPLAINED: Final = "3090x2-int4-mtp4-v0.27.1"
NOT_STOCK: Final = frozenset({"3090x2-q36-int4-mtp3-104", "syv-ai-7-dual"})
BEGIN, END = "<!-- begin: benchmarks/planner.py -->", "<!-- end: benchmarks/planner.py -->"


def config_of(catalog: Catalog) -> dict[str, Any]:
    """Return the model's config.json as other tools expect it."""
    a = catalog.models[MODEL].architecture
    assert a.linear is not None
    interval = a.layers // a.full_attention_layers
    kinds = ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(a.layers)]
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "hidden_size": a.hidden,
        "intermediate_size": a.ffn,
        "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.kv_heads,
        "head_dim": a.head_dim,
        "vocab_size": a.vocab,
        "max_position_embeddings": catalog.models[MODEL].context_max,
        "linear_num_key_heads": a.linear.key_heads,
        "linear_num_value_heads": a.linear.value_heads,
        "linear_key_head_dim": a.linear.key_head_dim,
        "linear_value_head_dim": a.linear.value_head_dim,
        "linear_conv_kernel_dim": a.linear.conv_kernel,
        "full_attention_interval": interval,
        "layer_types": kinds,
        "tie_word_embeddings": a.tied_embeddings,
        "dtype": "bfloat16",
        "torch_dtype": "bfloat16",
    }


def questions(catalog: Catalog, predictions: list[BootPrediction]) -> dict[str, Any]:
    """Return what the other estimators are asked."""
    counts = parameter_counts(catalog.models[MODEL].architecture)
    parameters = counts.embedding + counts.head + counts.body
    rows = []
    for item in predictions:
        boot = item.boot
        hardware = find_hardware(catalog, boot.hardware)
        assert hardware is not None
        drafter = boot.draft.file_bytes if boot.draft else 0
        rows.append(
            {
                "id": boot.id,
                "hardware": boot.hardware,
                "visible_bytes": hardware.torch_visible_bytes,
                "gpus": boot.gpus,
                "gpu_memory_utilization": boot.gpu_memory_utilization,
                "weights": boot.weights,
                "weights_bytes": (boot.weights_bytes or parameters * 2) + drafter,
                "parameters": parameters,
                "kv_cache_dtype": boot.kv_cache_dtype,
                "max_model_len": boot.max_model_len,
            }
        )
    gguf = [
        {"id": b.id, "weights_bytes": b.weights_bytes, "context": b.context, "cache_type": b.cache_type}
        for b in catalog.gguf_boots.values()
        if b.weights_bytes
    ]
    return {"config": config_of(catalog), "rows": rows, "gguf": gguf}


def geometry_rows(catalog: Catalog) -> Iterator[tuple[Boot, tuple[str, ...], bool]]:
    """Yield each boot with its line of the table and whether it is as it must be."""
    for boot in catalog.boots.values():
        check = check_boot(catalog, boot)
        interval = "-" if check.low_blocks is None else f"{check.low_blocks:,} to {check.high_blocks:,}"
        if boot.refused:
            assert check.high_blocks is not None
            right = not boots(check.geometry, check.high_blocks, boot.max_model_len)
            word = "refused, as seen" if right else "WRONG: would start"
        elif boot.pool_tokens is None or boot.approximate:
            right, word = True, "no exact tokens logged"
        elif check.exact:
            right, word = True, "exact"
        else:
            right, word = boot.id in NOT_STOCK, "not stock, excepted" if boot.id in NOT_STOCK else "WRONG"
        tokens = f"{boot.pool_tokens:,}" if boot.pool_tokens else "-"
        line = (
            boot.id,
            boot.engine_version,
            f"{check.geometry.block_tokens}"
            + (" (logged)" if boot.block_tokens == check.geometry.block_tokens else ""),
            f"{check.need_blocks:,}",
            tokens,
            f"{check.blocks:,}" if check.blocks else "-",
            interval,
            word,
        )
        yield boot, line, right and boot.block_tokens in (None, check.geometry.block_tokens)


def predict_all(catalog: Catalog, *, kin: bool = False) -> list[BootPrediction]:
    """Return every end-to-end prediction, each fitted without its row, or without all rows of its configuration."""

    def key(boot: Boot) -> tuple[Any, ...]:
        return (boot.weights, boot.drafter, boot.hardware, boot.tensor_parallel)

    found = []
    for boot in catalog.boots.values():
        out = [other.id for other in catalog.boots.values() if other is boot or (kin and key(other) == key(boot))]
        prediction = predict_boot(catalog, boot, calibrate(catalog, without=out))
        if prediction:
            found.append(prediction)
    return found


def gguf_rows(catalog: Catalog) -> Iterator[tuple[GgufBoot, tuple[float, ...]]]:
    """Yield each llama.cpp boot of known weights with MiB predicted a device."""
    for boot in catalog.gguf_boots.values():
        if boot.weights_bytes is None:
            continue
        inputs = GgufInputs(
            architecture=catalog.models[boot.model].architecture,
            file_bytes=boot.weights_bytes,
            context=boot.context,
            cache_type=boot.cache_type,
            draft_layers=boot.draft_layers,
            projector_bytes=boot.projector_bytes,
            split=boot.split,
        )
        terms = device_terms(catalog, inputs, boot.devices)
        yield boot, tuple(sum(term.best_bytes for term in device) / MIB for device in terms)


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def spread(errors: list[float]) -> str:
    return f"median {statistics.median(errors):.2%}, worst {max(errors):.2%}, {len(errors)} rows"


def peer_rows(
    answers: dict[str, Any], ours: dict[str, BootPrediction]
) -> tuple[list[tuple[str, ...]], list[tuple[str, float, float]]]:
    """Return the peers' table and, for each that gave numbers, its median error and ours on the same rows."""
    rows: list[tuple[str, ...]] = []
    medians: list[tuple[str, float, float]] = []
    for name, answer in answers.items():
        given = {key: value for key, value in answer.get("tokens", {}).items() if key in ours}
        reasons = sorted(set(answer["not_run"].values()))
        if "mib" in answer:
            continue
        if not given:
            rows.append(
                (
                    f"{name} {answer['version']}",
                    "0",
                    "-",
                    "-",
                    "-",
                    f"not run: {reasons[0] if reasons else 'no answer'}",
                )
            )
            continue
        errors = [abs(value / ours[key].measured_tokens - 1) for key, value in given.items()]
        mine = [abs(ours[key].error) for key in given]
        medians.append((name, statistics.median(errors), statistics.median(mine)))
        missing = f"; not run on {len(answer['not_run'])}: {reasons[0]}" if reasons else ""
        rows.append(
            (
                f"{name} {answer['version']}",
                str(len(given)),
                f"{statistics.median(errors):.1%}",
                f"{max(errors):.0%}",
                f"{statistics.median(mine):.2%}",
                answer["how"] + missing,
            )
        )
    return rows, medians


def gguf_table(catalog: Catalog, answers: dict[str, Any]) -> str:
    """Return the llama.cpp boots."""
    peer = answers.get("ggufit", {}).get("mib", {})
    rows = []
    for boot, predicted in gguf_rows(catalog):
        for index, (guess, seen) in enumerate(zip(predicted, boot.reported_mib, strict=True)):
            theirs = f"{peer[boot.id] / boot.devices / seen - 1:+.0%}" if boot.id in peer else "-"
            rows.append(
                (f"{boot.id}, GPU {index}", f"{guess:,.0f}", f"{seen:,.0f}", f"{guess / seen - 1:+.1%}", theirs)
            )
    return table(("boot", "predicted MiB", "measured MiB", "error", "ggufit 0.3.0, spread evenly"), rows)


def timing(catalog: Catalog) -> str:
    """Return how long planning every tier for one rig takes, imports and reading of files left out."""
    from redline.catalog.resolve import resolve
    from redline.settings import Layers

    rig = rig_of_words(catalog, "2x3090")
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for slug in catalog.tiers:
            plan_tier(catalog, resolve(catalog, slug, Layers()), rig)
        best = min(best, time.perf_counter() - started)
    return f"{len(catalog.tiers)} tiers planned for 2x3090 in {best * 1000:.0f} ms (best of five, imports excluded)"


def geometry_section(catalog: Catalog) -> tuple[str, list[str]]:
    found = list(geometry_rows(catalog))
    exact = sum(1 for _, line, _ in found if line[-1] == "exact")
    heads = ("boot", "vLLM", "tokens a block", "one request", "logged tokens", "blocks", "interval", "result")
    text = (
        f"### Blocks and tokens\n\n{exact} of {len(found)} boots log tokens that are an integer number of blocks by "
        "these rules and, where they log bytes too, a number that the rounding of the log allows (the interval).\n\n"
    )
    return text + table(heads, [line for _, line, _ in found]), [
        f"geometry of {boot.id}" for boot, _, right in found if not right
    ]


def end_section(catalog: Catalog, predictions: list[BootPrediction]) -> tuple[str, list[str]]:
    errors = [abs(item.error) for item in predictions]
    kin = [abs(item.error) for item in predict_all(catalog, kin=True)]
    here = [abs(item.error) for item in predictions if item.boot.hardware != "h200"]
    missed = statistics.median(errors) > MEDIAN_TARGET or max(errors) > WORST_TARGET
    heads = ("boot", "predicted GiB", "measured GiB", "predicted tokens", "measured tokens", "error")
    rows = [
        (
            item.boot.id,
            f"{item.predicted_available_bytes / GIB:.2f}",
            f"{item.measured_available_bytes / GIB:.2f}",
            f"{item.predicted_tokens:,}",
            f"{item.measured_tokens:,}" + (" (published rounded)" if item.boot.approximate else ""),
            f"{item.error:+.2%}",
        )
        for item in predictions
    ]
    excluded = [(boot.id, boot.held_out, boot.source) for boot in catalog.boots.values() if boot.held_out]
    text = (
        "### End to end\n\nFrom the settings alone, every term fitted without the row predicted: "
        f"{spread(errors)} (without the H200 rows: {spread(here)}). Fitted without every row of the same weights, "
        f"drafter, GPU and split: {spread(kin)}.\n\n"
        f"{table(heads, rows)}\n\nShown, and not predicted end to end:\n\n"
        f"{table(('boot', 'why', 'source'), excluded)}\n\nThe unexplained one of these: {unexplained(catalog)}"
    )
    return text, [f"end to end: {spread(errors)}"] if missed else []


def terms_section(catalog: Catalog) -> str:
    model = calibrate(catalog)
    rows = [
        (term.title, f"{value:+.2f}", f"{model.covariance[i][i] ** 0.5:.2f}", str(len(seen)), term.source)
        for i, (term, value, seen) in enumerate(zip(model.terms, model.values_gib, model.boots, strict=True))
    ]
    heads = ("term", "GiB", "sd", "boots", "source of the prior")
    lead = "### Fitted terms\n\nGiB a GPU, its standard deviation, and how many boots speak about the term.\n\n"
    return lead + table(heads, rows)


def peers_section(answers: dict[str, Any], predictions: list[BootPrediction]) -> tuple[str, list[str]]:
    rows, medians = peer_rows(answers, {item.boot.id: item for item in predictions})
    heads = ("estimator", "rows", "median error", "worst", "redline on the same rows", "how")
    lead = (
        "### Other estimators\n\nThe same rows, through their own Python functions and a local config "
        "(`benchmarks/planner_peers`): error of the pool's tokens.\n\n"
    )
    return lead + table(heads, rows), [
        f"peer {name}: {theirs:.2%} against {mine:.2%}" for name, theirs, mine in medians if theirs < PEER_FACTOR * mine
    ]


def report(catalog: Catalog, answers: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the generated part of the document and every target that does not hold."""
    predictions = predict_all(catalog)
    blocks, wrong_blocks = geometry_section(catalog)
    end, wrong_end = end_section(catalog, predictions)
    peers, wrong_peers = peers_section(answers, predictions)
    gguf = (
        "### llama.cpp\n\nThe two rows of known weights set the CUDA terms themselves, so this is how well one value "
        f"serves all devices.\n\n{gguf_table(catalog, answers)}"
    )
    speed = f"### Speed\n\n{timing(catalog)}."
    parts = (blocks, end, terms_section(catalog), peers, gguf, speed)
    return "\n\n".join(parts) + "\n", [*wrong_blocks, *wrong_end, *wrong_peers]


def unexplained(catalog: Catalog) -> str:
    """Return the error of the row that no term explains."""
    boot = replace(catalog.boots[UNEXPLAINED], held_out="")
    found = predict_boot(catalog, boot, calibrate(catalog))
    assert found is not None
    return f"{boot.id}, {found.predicted_tokens:,} predicted, {found.measured_tokens:,} measured, {found.error:+.1%}."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into docs/planner.md")
    parser.add_argument("--peers", action="store_true", help="ask the other estimators anew")
    options = parser.parse_args()
    catalog = load_catalog()
    kept = PEERS / "results.json"
    if options.peers:
        question = json.dumps(questions(catalog, predict_all(catalog)))
        done = subprocess.run([str(PEERS / "run")], input=question, capture_output=True, text=True, check=True)
        kept.write_text(done.stdout)
    answers = json.loads(kept.read_text()) if kept.is_file() else {}
    text, failures = report(catalog, answers)
    if options.write:
        before, _, rest = DOCUMENT.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
    else:
        print(text)
    for failure in failures:
        print(f"target missed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
