"""vLLM's own allocator, asked beforehand, against plan.geometry: same blocks, same tokens, on every recorded case."""

import dataclasses
import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from redline.catalog.load import load_catalog
from redline.plan.geometry import (
    AllocatorRules,
    CacheKind,
    CacheLayers,
    PoolGeometry,
    boots,
    largest_context,
    pool_blocks,
    pool_geometry,
    pool_tokens,
    request_blocks,
)
from redline.plan.rules import allocator_rules, with_block_size

CASES = Path(__file__).parents[2] / "conformance" / "allocator_cases.jsonl.gz"
KINDS = {"gdn": CacheKind.STATE, "sliding": CacheKind.SLIDING, "full": CacheKind.FULL}
VALUE_BYTES = {"auto": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


@cache
def cases() -> tuple[dict[str, Any], ...]:
    """Return the recorded questions with vLLM 0.33.0's answers."""
    if not CASES.is_file():
        pytest.skip("conformance/allocator_cases.jsonl.gz is not there")
    with gzip.open(CASES, "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


@cache
def rules_for(gdn_prefill: str, attention: str, block_size: int | None) -> AllocatorRules:
    rules, _ = allocator_rules(load_catalog(), "0.33.0", gdn_prefill, None, attention=attention.upper())
    return with_block_size(rules, block_size)


def layers_of(question: dict[str, Any]) -> tuple[CacheLayers, ...]:
    """Return a question's layers on one GPU."""
    a, draft, tp = question["architecture"], question["drafter"], question["tp"]
    value = VALUE_BYTES[question["kv_dtype"]]
    shape: dict[str, Any] = {"heads": max(1, a["kv_heads"] // tp), "width": a["head_size"], "value_bytes": value}
    mtp = 1 if draft["kind"] == "mtp" else 0
    found = [CacheLayers(name="full", kind=CacheKind.FULL, layers=a["full_layers"] + mtp, **shape)]
    if a["gdn_layers"]:
        keys, values = a["gdn_key_heads"] * a["gdn_head_size"], a["gdn_value_heads"] * a["gdn_head_size"]
        taps = a["gdn_conv_taps"] - 1 + draft["depth"]
        state_value = 4 if a["state_dtype"] == "float32" else 2
        matrix = a["gdn_value_heads"] // tp * a["gdn_head_size"] ** 2 * state_value
        state = (2 * keys + values) // tp * taps * 2 + matrix
        found.append(CacheLayers(name="gdn", kind=CacheKind.STATE, layers=a["gdn_layers"], state_bytes=state))
    found.append(
        CacheLayers(
            name="slide", kind=CacheKind.SLIDING, layers=a["sliding_layers"], window=a["sliding_window"], **shape
        )
    )
    if draft["kind"] == "dflash2":
        found.append(
            CacheLayers(
                name="draft",
                kind=CacheKind.SLIDING,
                layers=draft["layers"],
                heads=max(1, draft["kv_heads"] // tp),
                width=draft["head_size"],
                value_bytes=value,
                window=draft["sliding_window"],
            )
        )
    return tuple(item for item in found if item.layers)


def geometry_for(question: dict[str, Any]) -> PoolGeometry:
    return pool_geometry(
        layers_of(question),
        rules_for(question["gdn_prefill"], question["attention"], question.get("block_size")),
        batched_tokens=question["batched_tokens"],
        depth=question["drafter"]["depth"],
        prefix_caching=question["prefix_caching"],
    )


def differences(case: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what differs between vLLM's answer and ours, by name."""
    question, answer = case["question"], case["answer"]
    geometry = geometry_for(question)
    blocks = pool_blocks(geometry, question["available_bytes"])
    started = boots(geometry, blocks, question["context"])
    ours = {
        "block_tokens": geometry.block_tokens,
        "pool_block_bytes": geometry.pool_block_bytes,
        "request_blocks": request_blocks(geometry, question["context"]),
        "num_blocks": blocks,
        "boots": started,
        "tokens": pool_tokens(geometry, blocks, question["context"]) if started else None,
        "largest_context": largest_context(geometry, blocks, question["architecture"]["context_max"]),
        "tables": Counter(_table(g.kind, g.block_tokens) for g in geometry.groups for _ in range(g.count)),
    }
    theirs = {name: answer[name] for name in ours if name != "tables"}
    theirs["tables"] = Counter(_table(KINDS[group["kind"]], group["block_tokens"]) for group in answer["groups"])
    return {name: (theirs[name], ours[name]) for name in ours if theirs[name] != ours[name]}


def _table(kind: CacheKind, block_tokens: int) -> tuple[str, int]:
    """Name a block table. The block of a state is a mere label: it spans the whole context without prefix caching."""
    return kind.value, 0 if kind is CacheKind.STATE else block_tokens


def test_every_case_agrees() -> None:
    wrong = [(case["question"], found) for case in cases() if (found := differences(case))]
    assert not wrong, f"{len(wrong)} of {len(cases())} differ, first: {wrong[0]}"


def test_there_are_at_least_two_hundred_different_configurations() -> None:
    shapes = {json.dumps({**case["question"], "available_bytes": 0}, sort_keys=True) for case in cases()}
    assert len(shapes) >= 200
    assert {case["answer"]["boots"] for case in cases()} == {True, False}


@pytest.mark.parametrize("field", ["state_blocks", "null_blocks", "rounding_tokens", "concurrent_batches"])
def test_a_wrong_constant_is_noticed(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = rules_for

    def wrong(gdn_prefill: str, attention: str, block_size: int | None) -> AllocatorRules:
        rules = right(gdn_prefill, attention, block_size)
        return dataclasses.replace(rules, **{field: getattr(rules, field) + 16})

    monkeypatch.setitem(globals(), "rules_for", wrong)
    assert any(differences(case) for case in cases())
