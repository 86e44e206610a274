"""One copy over machines: ranks differ where they must and nowhere else, and what a scheduler runs is that command."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from redline.catalog.load import PACKAGED, read_catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.protocol import Form
from redline.engine.registry import get_engine
from redline.errors import UsageError
from redline.launch.render.lws import lws_objects
from redline.launch.render.multinode import node_plans
from redline.launch.render.words import drop_flags, set_flag
from redline.ops.cluster import CLUSTER_KINDS, Layout, lay_out, render_cluster
from redline.plan.spread import Cut, Spread
from redline.rig.types import Rig
from redline.settings import Layers

RIG = Rig(cpu_model="cpu", cpus=8, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="6.8", wsl=False)
MODELS = Path("/srv/models")
CATALOG = read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())
VLLM = sorted(slug for slug, key in CATALOG.tiers.items() if key.engine == "vllm")
SUPER, MAX = "vllm/qwen38-27b-multi8-superfast", "vllm/qwen38-27b-multi8-max"
TWO = ("10.0.0.1", "10.0.0.2")
SCHEMA = yaml.safe_load((Path(__file__).parent / "schemas" / "leaderworkerset-v1.yaml").read_text())


def plan_of(slug: str, layout: Layout, kind: str, env: dict[str, str] | None = None) -> tuple[LaunchPlan, Spread]:
    tier, spread, _ = lay_out(CATALOG, slug, Layers(environ=env or {}), layout, kind)
    form: Form | None = "docker" if kind == "lws" or layout.container else None
    return get_engine(tier.key.engine).launch_plan(CATALOG, tier, RIG, MODELS, form), spread


def rendered(slug: str, kind: str, layout: Layout, env: dict[str, str] | None = None) -> str:
    return render_cluster(CATALOG, slug, Layers(environ=env or {}), RIG, MODELS, kind, layout).text


@settings(deadline=None, max_examples=60)
@given(
    slug=st.sampled_from(VLLM),
    nodes=st.sampled_from([2, 3, 4, 8]),
    gpus=st.sampled_from([1, 2, 4, 8]),
    cut=st.sampled_from(Cut),
    interface=st.sampled_from([None, "eth0"]),
    container=st.booleans(),
    more=st.sampled_from(["", "--seed 7", "--max-loras 2 --enable-lora"]),
)
def test_ranks_differ_only_in_rank_head_address_and_port(
    slug: str, nodes: int, gpus: int, cut: Cut, interface: str | None, more: str, *, container: bool
) -> None:
    addresses = tuple(f"10.0.0.{number}" for number in range(nodes))
    layout = Layout(
        nodes=nodes, gpus_per_node=gpus, cut=cut, addresses=addresses, interface=interface, container=container
    )
    plan, spread = plan_of(slug, layout, "multinode", {"ENGINE_ARGS": more} if more else None)
    made = node_plans(plan, spread)
    assert len(made) == nodes
    own = ("--node-rank", "--host", "--port")
    commands = {tuple(word for word in drop_flags(node.argv, own) if word != "--headless") for node in made}
    assert len(commands) == 1
    variables = {tuple((k, v) for k, v in node.env.items() if k != "VLLM_HOST_IP") for node in made}
    assert len(variables) == 1
    for rank, node in enumerate(made):
        words = node.argv
        assert words[words.index("--node-rank") + 1] == str(rank)
        assert node.env["VLLM_HOST_IP"] == addresses[rank]
        assert ("--headless" in words) == (rank > 0)
        assert ("--host" in words) == ("--port" in words) == (rank == 0)
        assert words[words.index("--master-addr") + 1] == addresses[0]
    sizes = [int(made[0].argv[made[0].argv.index("--tensor-parallel-size") + 1])]
    if "--pipeline-parallel-size" in made[0].argv:
        sizes.append(int(made[0].argv[made[0].argv.index("--pipeline-parallel-size") + 1]))
    assert (sizes[0] * (sizes[1] if sizes[1:] else 1)) == nodes * gpus


@pytest.mark.parametrize(
    ("slug", "kind", "layout"),
    [
        (SUPER, "multinode", Layout(addresses=TWO, interface="eth0")),
        (MAX, "multinode", Layout(addresses=TWO, container=True, cut=Cut.PIPELINE)),
        (SUPER, "sbatch", Layout(nodes=2, interface="ib0", network_fast=True)),
        ("vllm/qwen38-27b-dual-ultrafast", "sbatch", Layout()),
        (SUPER, "lws", Layout(nodes=2, replicas=2)),
        ("llamacpp/qwen38-27b-single-iq4xs", "lws", Layout()),
        ("vllm/qwen38-27b-dual-ultrafast", "replicas", Layout(replicas=2)),
        ("llamacpp/qwen38-27b-dual-q8kxl", "replicas", Layout(replicas=3)),
        ("vllm/qwen38-27b-dual-fast", "systemd", Layout()),
        ("llamacpp/qwen38-27b-single-iq4xs", "systemd", Layout()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_golden(slug: str, kind: str, layout: Layout, snapshot: SnapshotAssertion) -> None:
    env = {"SPEC_N": "0"} if layout.cut is Cut.PIPELINE else None
    assert rendered(slug, kind, layout, env) == snapshot


@pytest.mark.parametrize("kind", CLUSTER_KINDS)
def test_every_tier_renders_for_every_target_that_is_legal(kind: str) -> None:
    layout = Layout(nodes=2, addresses=TWO if kind == "multinode" else ()) if kind != "replicas" else Layout()
    layout = Layout() if kind == "systemd" else layout
    spanning = kind in ("sbatch", "lws", "multinode")
    for slug, key in CATALOG.tiers.items():
        if not spanning or (key.engine == "vllm" and key.topology != "single"):
            assert rendered(slug, kind, layout)
            continue
        with pytest.raises(UsageError, match=r"does not span|do not divide|no container form"):
            rendered(slug, kind, layout)


SLURM = """#!/usr/bin/env python3
import os, subprocess, sys
for rank in range(int(os.environ["SLURM_NNODES"])):
    done = subprocess.run(sys.argv[2:], env={**os.environ, "SLURM_NODEID": str(rank)})
    if done.returncode: sys.exit(done.returncode)
"""
VLLM_PROGRAM = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["SEEN"], "a") as out:
    print(json.dumps({"argv": ["vllm", *sys.argv[1:]], "env": dict(os.environ)}), file=out)
"""
IP = '#!/bin/sh\necho "2: ib0    inet 10.0.0.9/24 brd 10.0.0.255 scope global ib0"\n'


def run_slurm(script: str, folder: Path, nodes: int) -> list[dict[str, Any]]:
    """Run a batch script with stand-ins for Slurm's programs, and return what each task would have run."""
    programs = {
        "scontrol": "#!/bin/sh\nprintf 'node-a\\nnode-b\\n'\n",
        "srun": SLURM,
        "vllm": VLLM_PROGRAM,
        "ip": IP,
    }
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    (folder / "job.sh").write_text(script)
    environ = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SLURM_NNODES": str(nodes),
        "SLURM_JOB_NODELIST": "node-[a-b]",
        "SEEN": str(folder / "seen.jsonl"),
    }
    subprocess.run(["bash", str(folder / "job.sh")], env=environ, check=True, timeout=60)
    return [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("slug", [SUPER, "vllm/qwen38-27b-multi8-ultramax"])
def test_the_batch_script_runs_the_command_of_each_rank(slug: str, nodes: int, tmp_path: Path) -> None:
    env = {"ENGINE_ARGS": "--note 'a $HOME \"quoted\" `word`'"}
    layout = Layout(nodes=nodes, interface="ib0")
    script = rendered(slug, "sbatch", layout, env)
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    seen = run_slurm(script, tmp_path, nodes)
    plan, spread = plan_of(slug, layout, "sbatch", env)
    if nodes == 1:
        wanted = [(*drop_flags(plan.argv, ("--host", "--port")), "--host", plan.host, "--port", str(plan.port))]
    else:
        named = Spread(nodes=nodes, gpus_per_node=spread.gpus_per_node, cut=spread.cut, addresses=("node-a", "node-b"))
        wanted = [node.argv for node in node_plans(plan, named)]
    assert [tuple(task["argv"]) for task in seen] == wanted
    for task in seen:
        assert plan.env.items() <= task["env"].items()
        assert task["env"].get("VLLM_HOST_IP") == ("10.0.0.9" if nodes > 1 else None)


def test_a_batch_script_for_others_asks_for_the_key(tmp_path: Path) -> None:
    script = rendered(SUPER, "sbatch", Layout(nodes=2), {"BIND_HOST": "0.0.0.0", "REDLINE_API_KEY": "topsecret"})
    assert "topsecret" not in script
    (tmp_path / "x").mkdir()
    with pytest.raises(subprocess.CalledProcessError):
        run_slurm(script, tmp_path / "x", 2)


@pytest.mark.parametrize("slug", [slug for slug in VLLM if "multi" in slug])
@pytest.mark.parametrize("nodes", [1, 2])
def test_kubernetes_objects_keep_the_published_schema(slug: str, nodes: int) -> None:
    plan, spread = plan_of(slug, Layout(nodes=nodes, interface="eth0"), "lws")
    group, service = lws_objects(plan, spread, 2)
    jsonschema.validate(group, SCHEMA)
    template = group["spec"]["leaderWorkerTemplate"]
    assert template["size"] == nodes
    leader, worker = (template[role]["spec"]["containers"][0] for role in ("leaderTemplate", "workerTemplate"))
    assert {key for key in leader if leader[key] != worker.get(key)} == {
        "args",
        "ports",
        "startupProbe",
        "readinessProbe",
    }
    assert drop_flags(leader["args"], ("--host", "--port")) == tuple(w for w in worker["args"] if w != "--headless")
    assert "--headless" in worker["args"]
    assert service["spec"]["selector"]["role"] == template["leaderTemplate"]["metadata"]["labels"]["role"]


@pytest.mark.parametrize("damage", [{"size": "2"}, {"restartPolicy": "Always"}, {"sise": 2}], ids=str)
def test_the_schema_can_refuse(damage: dict[str, Any]) -> None:
    plan, spread = plan_of(SUPER, Layout(nodes=2), "lws")
    group = lws_objects(plan, spread, 1)[0]
    group["spec"]["leaderWorkerTemplate"] |= damage
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(group, SCHEMA)


def test_kubernetes_reads_no_variable_in_a_users_argument() -> None:
    plan, spread = plan_of(SUPER, Layout(nodes=2), "lws", {"ENGINE_ARGS": "--note '$(HOME)'"})
    leader = lws_objects(plan, spread, 1)[0]["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    assert "$$(HOME)" in leader["spec"]["containers"][0]["args"]


@given(st.lists(st.sampled_from(["--a", "1", "--b=2", "x", "--c"]), max_size=8))
def test_dropping_what_is_not_there_changes_nothing(words: list[str]) -> None:
    assert drop_flags(words, ("--z",)) == tuple(words)
    assert set_flag(drop_flags(words, ("--port",)), "--port", "1")[-2:] == ("--port", "1")
