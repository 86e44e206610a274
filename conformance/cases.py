"""Seeded questions to the allocator, and the file that keeps vLLM's answers to them for tests that run without vLLM.

    .conformance/venv/bin/python -m conformance.cases --write      # asks vLLM, writes allocator_cases.jsonl.gz
    .conformance/venv/bin/python -m conformance.cases              # asks vLLM again, says what changed

Known: which configurations are worth asking about. `load_cases` needs neither vLLM nor torch.
"""

import argparse
import dataclasses
import gzip
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from conformance.shape import QWEN38_27B, Answer, Architecture, Drafter, Drafting, Group, Question

if TYPE_CHECKING:
    pass

PATH: Final = Path(__file__).resolve().parent / "allocator_cases.jsonl.gz"
SEED: Final = 20261129
CONTEXTS: Final = (4096, 8192, 16384, 32768, 65536, 98304, 131072, 147456, 204800, 244320, 262144)
SLIDING_WINDOWS: Final = (128, 512, 1024, 2048, 4096)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A question, vLLM 0.33.0's answer, and the family it was drawn from."""

    family: str
    question: Question
    answer: Answer


def load_cases(path: Path = PATH) -> list[Case]:
    """Return the recorded cases."""
    with gzip.open(path, "rt") as file:
        return [_case(json.loads(line)) for line in file]


def _case(record: dict[str, Any]) -> Case:
    answer = dict(record["answer"])
    groups = tuple(Group(**group) for group in answer.pop("groups"))
    return Case(record["family"], Question.from_json(record["question"]), Answer(groups=groups, **answer))


def questions(seed: int = SEED) -> Iterator[tuple[str, Question]]:
    """Yield configurations by family, each with zero available bytes."""
    rng = random.Random(seed)
    for family, draw, count in (
        ("qwen38-27b", _qwen, 72),
        ("hybrid", _hybrid, 72),
        ("sliding", _sliding, 48),
        ("dense", _dense, 48),
    ):
        for _ in range(count):
            yield family, draw(rng)


def _qwen(rng: random.Random) -> Question:
    architecture = dataclasses.replace(QWEN38_27B, state_dtype=rng.choice(("float32", "float32", "bfloat16")))
    return _serving(rng, architecture, _drafter(rng, mtp=True), tps=(1, 2, 2, 4, 4, 8))


def _hybrid(rng: random.Random) -> Question:
    full = rng.choice((6, 8, 10, 12, 15))
    kv_heads = rng.choice((1, 2, 4, 8))
    architecture = Architecture(
        full_layers=full,
        gdn_layers=full * rng.choice((1, 2, 3, 3)) + rng.choice((0, 0, 1)),
        kv_heads=kv_heads,
        head_size=rng.choice((128, 256)),
        attention_heads=max(8, kv_heads * rng.choice((2, 4, 8))),
        gdn_key_heads=16,
        gdn_value_heads=rng.choice((16, 32, 48, 64)),
        state_dtype=rng.choice(("float32", "bfloat16")),
    )
    return _serving(rng, architecture, _drafter(rng, mtp=True), tps=(1, 2, 4))


def _sliding(rng: random.Random) -> Question:
    full = rng.choice((4, 6, 8, 12))
    kv_heads = rng.choice((2, 4, 8))
    architecture = Architecture(
        full_layers=full,
        sliding_layers=full * rng.choice((1, 3, 5)) + rng.choice((0, 0, 1, 2)),
        sliding_window=rng.choice(SLIDING_WINDOWS),
        kv_heads=kv_heads,
        head_size=rng.choice((64, 128, 256)),
        attention_heads=max(8, kv_heads * 4),
        context_max=131072,
    )
    return _serving(rng, architecture, Drafter(), tps=(1, 2, 4))


def _dense(rng: random.Random) -> Question:
    kv_heads = rng.choice((2, 4, 8))
    architecture = Architecture(
        full_layers=rng.choice((16, 28, 32, 36, 48)),
        kv_heads=kv_heads,
        head_size=rng.choice((64, 128)),
        attention_heads=max(8, kv_heads * 4),
        context_max=131072,
    )
    return _serving(rng, architecture, _drafter(rng, mtp=False), tps=(1, 2, 4))


def _drafter(rng: random.Random, *, mtp: bool) -> Drafter:
    kind = rng.choice((Drafting.NONE, Drafting.MTP, Drafting.DFLASH2, Drafting.DFLASH2))
    if kind is Drafting.MTP and mtp:
        return Drafter(kind=kind, depth=rng.randint(1, 6))
    if kind is not Drafting.DFLASH2:
        return Drafter()
    published = rng.random() < 0.6  # 5 layers, 8 heads of 128, window 2048: the export for Qwen3.8-27B
    return Drafter(
        kind=kind,
        depth=rng.choice((7, 7, 15, 3)),
        layers=5 if published else rng.choice((4, 6, 8)),
        kv_heads=8 if published else rng.choice((2, 4, 8)),
        sliding_window=2048 if published else rng.choice((1024, 4096)),
    )


def _serving(rng: random.Random, architecture: Architecture, drafter: Drafter, tps: tuple[int, ...]) -> Question:
    context = rng.choice(CONTEXTS) if rng.random() < 0.7 else rng.randrange(1024, 262144)
    return Question(
        architecture=architecture,
        drafter=drafter,
        context=min(context, architecture.context_max),
        available_bytes=0,
        tp=rng.choice(tps),
        kv_dtype=rng.choice(("auto", "fp8_e4m3")),
        attention=rng.choice(("flash_attn", "flash_attn", "flashinfer")),
        gdn_prefill=rng.choice(("triton", "triton", "flashinfer")),
        prefix_caching=rng.random() < 0.8,
        batched_tokens=rng.choice((2048, 4096, 8192, 8192, 16384)),
        seqs=rng.choice((1, 1, 2, 4, 8)),
        block_size=rng.choice((None, None, None, None, 32, 64)),
    )


def byte_amounts(rng: random.Random, pool_block_bytes: int, request_blocks: int) -> tuple[int, ...]:
    """Return three amounts: some room, the refusal limit (a byte short of it, or just enough), and a tight one."""
    need = pool_block_bytes * (request_blocks + 1)
    return (
        round(need * rng.uniform(1.0, 6.0)),
        need - rng.choice((0, 1)),
        pool_block_bytes * rng.randint(max(1, request_blocks - 2), request_blocks + 2)
        + rng.randrange(pool_block_bytes),
    )


def ask() -> Iterator[str]:
    """Yield every case as a line, vLLM's answer included."""
    from conformance.allocator import Allocator

    rng = random.Random(SEED + 1)
    for family, question in questions():
        plan: Allocator = Allocator(question)
        for available_bytes in byte_amounts(rng, plan.pool_block_bytes, plan.request_blocks):
            case = Case(family, question.with_bytes(available_bytes), plan.answer(available_bytes))
            yield json.dumps(dataclasses.asdict(case), separators=(",", ":"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the answers as the recorded ones")
    options = parser.parse_args()
    from conformance.engine import prepare

    prepare()
    lines = list(ask())
    if options.write:
        text = "".join(f"{line}\n" for line in lines)
        PATH.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
        print(f"{len(lines)} cases, {PATH.stat().st_size / 1024:.0f} KiB")
        return 0
    recorded = [json.dumps(dataclasses.asdict(case), separators=(",", ":")) for case in load_cases()]
    changed = [index for index, (old, new) in enumerate(zip(recorded, lines, strict=True)) if old != new]
    for index in changed[:10]:
        print(f"case {index}\n  recorded {recorded[index]}\n  now      {lines[index]}")
    print(f"{len(lines)} cases, {len(changed)} changed")
    return 1 if changed else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # as in allocator.py
