"""The tables of docs/gpu.md and the boots of the catalogue, written from the evidence that was brought back.

    .venv/bin/python gpu/report.py            write docs/gpu.md between its marks, and the catalogue's boots on H200
    .venv/bin/python gpu/report.py --check    compare instead; ends with 1 where they differ

Reads gpu/evidence/*.jsonl; measures nothing.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "host")]
import yaml
from predict import boot_of

from redline.catalog.load import load_catalog
from redline.catalog.types import Catalog
from redline.plan.boots import inputs_of_boot, loaded_bytes
from redline.record.codec import jsonable

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "gpu.md"
BOOTS: Final = ROOT / "src/redline/catalog/data/memory/boots_h200.yaml"
EVIDENCE: Final = ROOT / "gpu" / "evidence"
BEGIN, END = "<!-- begin: gpu/report.py -->", "<!-- end: gpu/report.py -->"
GIB: Final = 2**30
SOURCE: Final = "redline: gpu/evidence/{file}, row {row}, read from inside the engine"


def read_evidence() -> list[dict[str, Any]]:
    """Return every row's line, with the name of its file."""
    found = []
    for path in sorted(EVIDENCE.glob("*.jsonl")):
        found += [{**json.loads(text), "file": path.name} for text in path.read_text().splitlines() if text]
    return found


def booted(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of whole engines that started, each with its `boot` fact."""
    rows = []
    for line in lines:
        boot = next((fact for fact in line["facts"] if fact["fact"] == "boot"), None)
        if line["kind"] == "boot" and boot and line["asked"]["shards"] == 1:
            rows.append({**line, "boot": boot})
    return rows


def least(line: dict[str, Any], name: str = "available_bytes") -> int:
    """Return the least of a number over the GPUs of a boot."""
    return min(int(worker[name]) for worker in line["boot"]["workers"])


def head(*names: str) -> list[str]:
    """Return the first two lines of a table."""
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def words_of(asked: dict[str, Any]) -> str:
    """Return what a boot asked for, in a few words; what is usual is left out."""
    depth = f" {asked['depth']}" if asked["depth"] else ""
    parts = [f"{asked['drafter']}{depth}", asked["kv"]]
    parts += ["state bf16"] if asked["state"] == "bfloat16" else []
    parts += [f"{asked['context']:,}", f"{asked['seqs']} seq" + ("s" if asked["seqs"] > 1 else "")]
    parts += [] if asked["prefix_caching"] else ["no prefix cache"]
    parts += [f"TP {asked['tp']}"] if asked["tp"] > 1 else []
    parts += [] if asked["graphs"] else ["eager"]
    parts += [f"batch of {asked['batched']:,}"] if asked["batched"] != 8192 else []
    parts += [f"block {asked['block_size']}"] if asked["block_size"] else []
    parts += [asked["checkpoint"]] if asked["checkpoint"] not in ("", "drafter-16") else []
    parts += ["torch.compile"] if asked["compile"] else []
    return ", ".join(parts)


def pools(lines: list[dict[str, Any]]) -> list[str]:
    """Return the table of pools: blocks by the rules from the engine's own bytes, and the plan made beforehand."""
    rows = []
    for line in booted(lines):
        predicted, bytes_ = line["predicted"], least(line)
        by_rule = bytes_ // predicted["pool_block_bytes"]
        seen = int(line["boot"]["num_gpu_blocks"])
        off = predicted["available_bytes"][1] / bytes_ - 1
        inside = predicted["available_bytes"][0] <= bytes_ <= predicted["available_bytes"][2]
        rows.append(
            f"| {line['row']} | {words_of(line['asked'])} | {predicted['block_tokens']} | {bytes_:,} | {by_rule:,} "
            f"| {seen:,} | {'exact' if by_rule == seen else f'**{seen - by_rule:+,}**'} | "
            f"{predicted['available_bytes'][1] / GIB:.2f} | {bytes_ / GIB:.2f} | "
            f"{off:+.2%}{'' if inside else ' (outside)'} |"
        )
    exact = sum("| exact |" in row for row in rows)
    return [
        f"{exact} of {len(rows)} boots have exactly the blocks that the rules give for the engine's own bytes.",
        "",
        *head(
            "row",
            "asked",
            "tokens a block",
            "bytes for the cache",
            "blocks by rule",
            "`num_gpu_blocks`",
            "",
            "planned GiB",
            "measured GiB",
            "error",
        ),
        *rows,
    ]


def terms(catalog: Catalog, lines: list[dict[str, Any]]) -> list[str]:
    """Return the table of memory outside the cache, a GPU, GiB."""
    rows = []
    for line in booted(lines):
        worker = line["boot"]["workers"][0]
        loaded = loaded_bytes(inputs_of_boot(catalog, boot_of(line)))
        other = worker["consumed_bytes"] - worker["weights_bytes"]
        activation = worker["activation_bytes"] - (worker["graph_estimate_bytes"] or 0)
        cells = (loaded, worker["weights_bytes"], other, activation, worker["graph_estimate_bytes"] or 0)
        graphs = (line["log"].get("graph_capture") or ("", "-"))[1]
        rows.append(f"| {line['row']} | {' | '.join(f'{value / GIB:.2f}' for value in cells)} | {graphs} |")
    return [
        *head(
            "row",
            "weights by shape",
            "weights loaded",
            "other consumed",
            "activation peak",
            "graphs, estimate",
            "graphs, captured",
        ),
        *rows,
    ]


def decodes(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every decode measurement, repeats of one setting joined: the mean of step and rate, and their spread."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in booted(lines):
        for fact in line["facts"]:
            if fact["fact"] != "decode":
                continue
            key = (line["row"], fact["batch"], fact["prompt"], fact["acceptance"])
            entry = found.setdefault(key, {"line": line, "fact": fact, "steps": [], "rates": []})
            entry["steps"].append(fact["step_ms"])
            entry["rates"].append(fact["tok_s"])
    return list(found.values())


def rates(lines: list[dict[str, Any]], copy_bytes_s: float | None) -> list[str]:
    """Return the table of decode rates. Acceptance is synthetic."""
    rows = []
    for entry in decodes(lines):
        line, fact = entry["line"], entry["fact"]
        asked, steps = line["asked"], entry["steps"]
        step = sum(steps) / len(steps)
        floor = step_bytes(asked, fact) / copy_bytes_s * 1000 if copy_bytes_s else None
        spread = (max(steps) - min(steps)) / step
        accepted = f"{fact['seen_acceptance']:.2f}" if fact["seen_acceptance"] else "-"
        rows.append(
            f"| {asked['drafter']} {asked['depth'] or ''}{' W4A16' if 'w4a16' in asked['checkpoint'] else ''}"
            f"{' compiled' if asked['compile'] else ''} | {asked['kv']} | {asked['tp']} | {fact['prompt']:,} "
            f"| {fact['batch']} | {accepted} | {sum(entry['rates']) / len(steps):.1f} | {step:.2f} | {spread:.1%} | "
            + (f"{floor:.2f} | {floor / step:.0%} |" if floor else "- | - |")
        )
    return [
        *head(
            "drafter",
            "cache",
            "TP",
            "context",
            "batch",
            "accepted length",
            "tok/s",
            "step ms",
            "spread",
            "bytes / copy rate, ms",
            "share",
        ),
        *rows,
    ]


BODY_BYTES: Final = 2 * (26_895_319_040 - 1_271_398_400)  # target without the embedding table, which is looked up
W4A16_BYTES: Final = 1_570_000_000  # loaded by the row decode-dflash2-7-w4a16 beyond the target
HEAD_BYTES: Final = 2 * 248_320 * 5_120
MTP_BYTES: Final = 849_346_560
DRAFT_BYTES: Final = {"": 3_850_000_000 - 254_279_680, "drafter-8-w4a16": 1_200_000_000 - 254_279_680}


def step_bytes(asked: dict[str, Any], fact: dict[str, Any]) -> float:
    """Return the bytes one step must read on one GPU: weights of target and drafter, head for drafts, cache, states."""
    value = 1 if asked["kv"] == "fp8" else 2
    mean_context = fact["prompt"] + fact["tokens"] / fact["batch"] / 2
    cache = fact["batch"] * mean_context * 16 * 4 * 256 * 2 * value
    states = fact["batch"] * 48 * (48 * 128 * 128 * (4 if asked["state"] == "float32" else 2)) * 2
    draft = 0.0
    if asked["drafter"] == "mtp":
        draft = asked["depth"] * (MTP_BYTES + HEAD_BYTES)
    elif asked["drafter"] == "dflash2":
        draft = DRAFT_BYTES.get(asked["checkpoint"], DRAFT_BYTES[""]) + HEAD_BYTES
    return float(BODY_BYTES + draft + cache + states) / int(asked["tp"])


def prefills(lines: list[dict[str, Any]]) -> list[str]:
    """Return the table of prompts read."""
    rows = []
    for line in booted(lines):
        seen: dict[int, list[float]] = {}
        for fact in line["facts"]:
            if fact["fact"] == "prefill":
                seen.setdefault(fact["prompt"], []).append(fact["seconds"])
        for prompt, seconds in seen.items():
            mean = sum(seconds) / len(seconds)
            rows.append(
                f"| {words_of(line['asked'])} | {prompt:,} | {mean:.2f} | {prompt / mean:,.0f} | {len(seconds)} |"
            )
    return [*head("engine", "prompt tokens", "seconds", "tok/s", "runs"), *rows]


def failures(lines: list[dict[str, Any]]) -> list[str]:
    """Return what did not start, or did not do all it was asked."""
    rows = []
    for line in lines:
        if line["error"]:
            text = " ".join(str(line["error"]["text"]).split())[-300:].replace("|", "/")
            rows.append(f"| {line['row']} | {line['error']['type']} | {text} |")
        rows += [
            f"| {line['row']}: {fact['what']['what']} | {fact['type']} | {fact['text'][-200:]} |"
            for fact in line["facts"]
            if fact["fact"] == "failed"
        ]
    return [*head("row", "what", "last words"), *rows] if rows else ["Every row ended as it should."]


def commands(lines: list[dict[str, Any]]) -> list[str]:
    """Return the commands of the scenarios, with exit code and seconds."""
    rows = []
    for line in lines:
        for fact in line["facts"]:
            if fact["fact"] == "step":
                words = fact["command"].replace("|", "\\|")
                words = words if len(words) < 100 else f"{words[:97]}..."
                rows.append(f"| {line['row']} | `{words}` | {fact['exit']} | {fact['seconds']} |")
    return [*head("scenario", "command", "exit", "seconds"), *rows]


def rig_lines(lines: list[dict[str, Any]]) -> list[str]:
    """Return what the numbers were made on."""
    versions: dict[str, Any] = next(
        (fact for line in lines for fact in line["facts"] if fact["fact"] == "versions"), {}
    )
    rig: dict[str, Any] = next((line["rig"] for line in lines if line["rig"].get("gpus")), {"gpus": []})
    dates = sorted({line["date"][:10] for line in lines})
    copies = [fact for line in lines for fact in line["facts"] if fact["fact"] == "copy"]
    copy = f" A device-to-device copy moved {copies[0]['median_bytes_s'] / 1e12:.2f} TB/s." if copies else ""
    names = ", ".join(f"{name} {versions[name]}" for name in ("vllm", "torch", "triton", "transformers") if versions)
    return [
        (
            f"{len(rig['gpus'])} x {rig['gpus'][0] if rig['gpus'] else 'no GPU'}, driver {rig.get('driver')}, {names}; "
            f"{' and '.join(dates)}; {len(lines)} rows.{copy}"
        )
    ]


def step_lines(catalog: Catalog) -> list[str]:
    """Return the fit of a step's cost."""
    from fit_steps import lines as fit_lines

    return fit_lines(catalog)


def tables(catalog: Catalog, lines: list[dict[str, Any]]) -> str:
    """Return the generated part of the page."""
    copies = [fact["median_bytes_s"] for line in lines for fact in line["facts"] if fact["fact"] == "copy"]
    parts: list[tuple[str, list[str]]] = [
        ("Rig", rig_lines(lines)),
        ("Pools", pools(lines)),
        ("Memory outside the cache", terms(catalog, lines)),
        ("Decode", rates(lines, copies[0] if copies else None)),
        ("Cost of a step", step_lines(catalog)),
        ("Prefill", prefills(lines)),
        ("Commands on the host", commands(lines)),
        ("What failed", failures(lines)),
    ]
    return "\n\n".join(f"### {title}\n\n" + "\n".join(rows) for title, rows in parts)


def boots_yaml(lines: list[dict[str, Any]]) -> str:
    """Return the boots of the catalogue that this evidence gives; of a setting that was booted twice the first."""
    rows: list[dict[str, Any]] = []
    before: list[dict[str, Any]] = []
    for line in booted(lines):
        asked = line["asked"]
        if asked["compile"] or asked in before:
            continue
        before.append(asked)
        boot = boot_of(line)
        data = {
            key: value
            for key, value in jsonable(boot).items()
            if value not in (None, "") and key not in ("approximate", "refused", "kind")
        }
        data |= {
            "id": f"h200-{line['row']}",
            "weights_bytes": None,
            "date": line["date"][:10],
            "available_bytes": least(line),
            "blocks": int(line["boot"]["num_gpu_blocks"]),
            "pool_tokens": int(line["log"]["pool_tokens"].replace(",", "")),
            "source": SOURCE.format(file=line["file"], row=line["row"]),
        }
        if asked["checkpoint"].endswith("w4a16"):
            # Its file size was a guess beforehand: the selector, the convolutions and fc stay 16 bits wide here.
            data["draft"] = {**data["draft"], "file_bytes": W4A16_BYTES}
        if line["log"].get("block_tokens"):
            data["block_tokens"] = int(line["log"]["block_tokens"])
        rows.append(data)
    text = yaml.safe_dump({"boots": rows}, sort_keys=False, width=120, allow_unicode=True)
    return "# Written by gpu/report.py from gpu/evidence: boots of the shape of Qwen3.8-27B on dummy weights.\n" + text


def main() -> int:
    """Write, or compare."""
    catalog, lines = load_catalog(), read_evidence()
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = {PAGE: f"{before}{BEGIN}\n\n{tables(catalog, lines)}\n\n{END}{after}", BOOTS: boots_yaml(lines)}
    if "--check" in sys.argv:
        differs = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
        for path in differs:
            print(f"{path.relative_to(ROOT)} is not what the evidence gives; run gpu/report.py")
        return int(bool(differs))
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
