"""One copy over several machines in vLLM's own form: the same command on each, but for rank and address.

A worker builds its part from its own command line, so everything else must be the same to the letter (vllm 0.33.0
entrypoints/cli/serve.py, run_headless). No daemon and no scheduler of ours: the text is to be run by the user.
"""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.argv import group_flags, join_lines, render_argv
from redline.launch.render.docker import docker_argv, secret_note
from redline.launch.render.words import drop_flags
from redline.plan.spread import Spread

TIMEOUT_S: Final = 1800  # machines read the weights at different speeds, and the first waits for the last


def node_plans(plan: LaunchPlan, spread: Spread) -> tuple[LaunchPlan, ...]:
    """Return one plan a machine, rank 0 first; `plan` is the tier's own, with the world's tensor and pipeline sizes.

    Raises:
        UsageError: no addresses, or an engine that cannot span machines.
    """
    need_vllm(plan)
    if len(spread.addresses) != spread.nodes:
        raise UsageError(
            f"{spread.nodes} machines need {spread.nodes} addresses.",
            next_step="Give --node ADDRESS for each, the first of them for rank 0.",
        )
    return tuple(_node(plan, spread, rank) for rank in range(spread.nodes))


def need_vllm(plan: LaunchPlan) -> None:
    """Check that the engine can span machines in this form.

    Raises:
        UsageError: it cannot.
    """
    if plan.engine != "vllm":
        raise UsageError(
            f"{plan.slug} runs on {plan.engine}, which does not span machines here.",
            next_step="Choose a tier of vllm, or several copies: --as replicas.",
        )


def _node(plan: LaunchPlan, spread: Spread, rank: int) -> LaunchPlan:
    # A container of several machines shares the network of its own, so the port inside is the one outside.
    host, port = plan.host, str(plan.port)
    base = drop_flags(plan.argv, ("--host", "--port"))
    own = ("--host", host, "--port", port) if rank == 0 else ("--headless",)
    argv = (*base, *topology_flags(spread, str(spread.nodes), str(rank), spread.addresses[0]), *own)
    env = {**plan.env, **network_env(spread), "VLLM_HOST_IP": spread.addresses[rank]}
    container = replace(plan.container, gpu_count=spread.gpus_per_node) if plan.container else None
    labels = {**plan.labels, "rank": str(rank)}
    return replace(plan, argv=argv, env=dict(sorted(env.items())), container=container, labels=labels)


def topology_flags(spread: Spread, nodes: str, rank: str, master: str) -> tuple[str, ...]:
    """Return the flags that say where a machine stands. The three words may be names that a scheduler fills in."""
    return (
        *("--nnodes", nodes),
        *("--node-rank", rank),
        *("--master-addr", master),
        *("--master-port", str(spread.master_port)),
        *("--distributed-executor-backend", "mp"),
        *("--distributed-timeout-seconds", str(TIMEOUT_S)),
    )


def network_env(spread: Spread) -> Mapping[str, str]:
    """Return the variables that keep NCCL and Gloo on the interface that was named."""
    if spread.interface is None:
        return {}
    return {"GLOO_SOCKET_IFNAME": spread.interface, "NCCL_SOCKET_IFNAME": spread.interface}


def render_multinode(plan: LaunchPlan, spread: Spread) -> str:
    """Return the commands of all machines as text, each under a comment that names its machine.

    Raises:
        UsageError: see `node_plans`.
    """
    parts = [secret_note(plan)] if secret_note(plan) else []
    for rank, node in enumerate(node_plans(plan, spread)):
        role = "answers requests" if rank == 0 else "works for rank 0"
        parts.append(f"# rank {rank} on {spread.addresses[rank]}: {role}\n{_text(node)}")
    return "\n".join(parts)


def _text(node: LaunchPlan) -> str:
    if node.container is None:
        return render_argv(node)
    words = docker_argv(node)
    image = words.index(node.container.image)
    # On the machine's own network: the ranks find each other by its addresses, on ports nobody names before.
    options = ["--network=host" if word.startswith("--publish=") else shlex.quote(word) for word in words[2:image]]
    return join_lines(["docker run", *options, words[image], *group_flags(words[image + 1 :])])
