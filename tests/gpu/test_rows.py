"""Plans of experiments: what they may say, and that prediction and boot are made from the same words."""

from pathlib import Path

import boot
import pytest
import rows
import shapes
from predict import boot_of

from tests.gpu.conftest import ROOT

PLAN = rows.read_plan(ROOT / "gpu" / "h200.yaml")
BOOTS = [row for row in PLAN["rows"] if row["kind"] == "boot"]


def test_a_word_that_no_boot_knows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("rows: [{id: a, kind: boot, asked: {drafters: mtp}}]")
    with pytest.raises(ValueError, match="drafters"):
        rows.read_plan(path)
    path.write_text("rows: [{id: a, kind: copy}, {id: a, kind: copy}]")
    with pytest.raises(ValueError, match="two rows"):
        rows.read_plan(path)


@pytest.mark.parametrize("row", BOOTS, ids=lambda row: row["id"])
def test_the_engine_is_asked_for_what_was_predicted(row: dict[str, object], tmp_path: Path) -> None:
    asked = row["asked"]
    assert isinstance(asked, dict)
    shapes.write_checkpoints(tmp_path)
    arguments, expected = rows.engine_arguments(asked, tmp_path), boot_of(row)
    assert arguments["max_model_len"] == expected.max_model_len
    assert arguments["tensor_parallel_size"] == expected.tensor_parallel
    assert arguments["enable_prefix_caching"] is expected.prefix_caching
    assert ("speculative_config" in arguments) == (expected.drafter != "none")
    assert (Path(arguments["model"]) / "config.json").is_file()


def test_sixteen_boots_over_all_axes() -> None:
    single = [row["asked"] for row in BOOTS if row["asked"]["tp"] == 1 and row["asked"]["shards"] == 1]
    assert len(single) >= 16
    seen = {name: {asked[name] for asked in single} for name in single[0]}
    assert {(asked["drafter"], asked["depth"]) for asked in single} >= {
        ("none", 0), ("mtp", 3), ("mtp", 4), ("dflash2", 7), ("dflash2", 15)
    }  # fmt: skip
    assert seen["kv"] == {"bf16", "fp8"}
    assert seen["state"] == {"float32", "bfloat16"}
    assert seen["context"] >= {65536, 204800, 262144}
    assert seen["seqs"] >= {1, 2, 8}
    assert seen["prefix_caching"] == {True, False}


@pytest.mark.parametrize(("length", "depth"), [(1.0, 7), (2.6, 3), (3.6, 7), (4.08, 4), (5.0, 4)])
def test_conditional_rates_give_the_mean_length(length: float, depth: int) -> None:
    rates = boot.conditional_rates(length, depth)
    assert len(rates) == depth
    reached, mean = 1.0, 1.0
    for rate in rates:
        reached *= rate
        mean += reached
    assert mean == pytest.approx(length)
