"""What a run says it was made from: labels of experiments, and values with their origins."""

from dataclasses import replace
from pathlib import Path

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.engine.registry import get_engine
from redline.ops.up import conditions
from redline.record.codec import jsonable
from redline.rig.types import Rig
from redline.settings import Layers

RIG = Rig(cpu_model="cpu", cpus=2, memory_total_bytes=2**34, memory_available_bytes=2**34, kernel="6.8", wsl=False)


def test_an_experiment_labels_what_is_made_with_it(tmp_path: Path) -> None:
    catalog = load_catalog()
    tier = resolve(catalog, "vllm/qwen38-27b-dual-ultrafast", Layers(environ={"SPEC_N": "15"}))
    plan = get_engine("vllm").launch_plan(catalog, tier, RIG, tmp_path)
    found = conditions(catalog, tier, RIG, replace(plan, labels={"experiment": "drafter-depth"}))
    assert found["labels"] == ("experiment:drafter-depth",)
    assert conditions(catalog, tier, RIG, plan)["labels"] == ()
    assert jsonable(found)["resolved"]["spec_n"] == {"value": 15, "origin": "env:SPEC_N"}
