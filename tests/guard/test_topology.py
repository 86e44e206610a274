"""Every line of vLLM's legality table: refused with a message, a remedy, a source and versions; or allowed."""

from pathlib import Path

import pytest

from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.types import Model
from redline.errors import UsageError
from redline.guard.finding import Finding, GuardRefusal, Severity
from redline.guard.topology import judge_command, judge_spread
from redline.ops.cluster import Layout, render_cluster
from redline.plan.spread import Cut, Spread, choose_cut, make_spread
from redline.rig.types import Rig
from redline.settings import Layers

CATALOG = read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())
QWEN = CATALOG.models["qwen3.8-27b"]
RIG = Rig(cpu_model="cpu", cpus=8, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="6.8", wsl=False)
DFLASH = '--speculative-config={"method":"dflash","num_speculative_tokens":7}'
MTP = '--speculative-config={"method":"mtp","num_speculative_tokens":3}'
TWO = "--nnodes 2 --node-rank 1 --headless"


def judge(text: str, model: Model = QWEN) -> dict[str, Finding]:
    return {finding.rule_id: finding for finding in judge_command(("vllm", "serve", "/m", *text.split()), model)}


REFUSED = {
    "-tp 3": "tensor-parallel",
    "--tensor-parallel-size 16": "tensor-parallel",
    "--tensor-parallel-size=5": "tensor-parallel",
    f"--tensor-parallel-size 4 --pipeline-parallel-size 2 {DFLASH}": "drafter-pipeline",
    f"-tp 2 -pp 4 --nnodes 4 {DFLASH}": "drafter-pipeline",
    "-tp 2 -pp 2 --spec-method dflash": "drafter-pipeline",
    "-tp 2 --data-parallel-rank 0": "dense-data-parallel",
    "-tp 2 --data-parallel-external-lb": "dense-data-parallel",
    "-tp 2 -dpn=1": "dense-data-parallel",
    "-tp 8 --nnodes 2 --distributed-executor-backend ray": "ray-nnodes",
    "-tp 8 -n 2 --data-parallel-backend=ray": "ray-nnodes",
    f"-tp 8 {TWO} --api-server-count 2": "headless-api-servers",
    "-tp 4 --nnodes 3": "nodes-world",
    "-tp 4 --nnodes 2 --node-rank 2": "node-rank",
    "-tp 4 --nnodes 2 --node-rank 0 --headless": "headless-rank-0",
}
ALLOWED = (
    "-tp 1",
    "-tp 8",
    f"-tp 8 {DFLASH}",
    f"-tp 8 {TWO} {DFLASH}",
    f"-tp 8 {TWO} --api-server-count 0",
    "-tp 4 -pp 2 --nnodes 2 --node-rank 1 --headless",
    f"-tp 4 -pp 2 {MTP}",
    "-tp 2 --data-parallel-size 2",
    "-tp 8 --nnodes 2 --distributed-executor-backend mp",
    "-tp 8 --distributed-executor-backend ray",
)


@pytest.mark.parametrize(("text", "rule_id"), REFUSED.items())
def test_what_vllm_refuses_is_refused(text: str, rule_id: str) -> None:
    found = judge(text)
    assert list(found) == [rule_id]
    said = found[rule_id]
    assert said.severity is Severity.REFUSE
    assert said.override is None
    assert said.source.startswith("vllm 0.33.0 ")
    assert ".py:" in said.source
    assert said.versions.startswith("vLLM ")
    assert said.remedy


@pytest.mark.parametrize("text", ALLOWED)
def test_what_vllm_takes_is_allowed(text: str) -> None:
    assert judge(text) == {}


@pytest.mark.parametrize(
    ("drafting", "fast", "cut"),
    [
        (True, False, Cut.TENSOR),
        (True, True, Cut.TENSOR),
        (False, True, Cut.TENSOR),
        (False, False, Cut.PIPELINE),
    ],
)
def test_a_drafter_leaves_the_tensor_cut_only(cut: Cut, *, drafting: bool, fast: bool) -> None:
    assert choose_cut(drafting=drafting, network_fast=fast) is cut


def warned(spread: Spread, own: int) -> dict[str, Severity]:
    return {finding.rule_id: finding.severity for finding in judge_spread(spread, QWEN, gpus_of_tier=own)}


def test_a_copy_that_one_machine_could_hold_is_called_needless() -> None:
    spread = Spread(nodes=2, gpus_per_node=4, cut=Cut.PIPELINE)
    assert warned(spread, 4) == {"needless-span": Severity.WARN, "pipeline-stages": Severity.NOTE}
    assert "needless-span" not in warned(spread, 8)


def test_layers_over_a_slow_network_are_warned_of() -> None:
    slow = Spread(nodes=2, gpus_per_node=4, cut=Cut.TENSOR)
    fast = Spread(nodes=2, gpus_per_node=4, cut=Cut.TENSOR, network_fast=True)
    assert warned(slow, 8) == {"tensor-over-network": Severity.WARN}
    assert warned(fast, 8) == {"tensor-over-network": Severity.NOTE}
    assert warned(Spread(nodes=1, gpus_per_node=8, cut=Cut.TENSOR), 8) == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"nodes": 3, "world": 8, "gpus_per_node": None},
        {"nodes": 2, "world": 0, "gpus_per_node": None},
        {"nodes": 2, "world": 8, "gpus_per_node": 4, "addresses": ("a",)},
        {"nodes": 2, "world": 8, "gpus_per_node": 4, "addresses": ("a", "a")},
        {"nodes": 0, "world": 8, "gpus_per_node": 4},
    ],
    ids=str,
)
def test_a_layout_that_contradicts_itself_is_a_usage_error(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        make_spread(cut=Cut.TENSOR, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slug", "layout", "env", "rule_id"),
    [
        ("vllm/qwen38-27b-multi8-superfast", Layout(nodes=2, gpus_per_node=8), {}, "tensor-parallel"),
        ("vllm/qwen38-27b-multi8-superfast", Layout(nodes=2, cut=Cut.PIPELINE), {}, "drafter-pipeline"),
        (
            "vllm/qwen38-27b-multi4-fast",
            Layout(nodes=2),
            {"ENGINE_ARGS": "--data-parallel-rank 1"},
            "dense-data-parallel",
        ),
    ],
)
def test_a_rendering_is_refused_with_the_same_words(
    slug: str, layout: Layout, env: dict[str, str], rule_id: str
) -> None:
    with pytest.raises(GuardRefusal) as caught:
        render_cluster(CATALOG, slug, Layers(environ=env), RIG, Path("/srv/models"), "sbatch", layout)
    assert rule_id in caught.value.details
    assert caught.value.exit_code == 5


def test_a_router_for_everyone_is_said_beside_its_text() -> None:
    where = (RIG, Path("/srv/models"), "replicas", Layout())
    slug, opened = "vllm/qwen38-27b-dual-fast", Layers(environ={"BIND_HOST": "0.0.0.0", "REDLINE_API_KEY": "k" * 20})
    said = {item.rule_id: item.severity for item in render_cluster(CATALOG, slug, opened, *where).findings}
    assert said["router-open"] is Severity.WARN
    assert "router-open" not in {item.rule_id for item in render_cluster(CATALOG, slug, Layers(), *where).findings}
