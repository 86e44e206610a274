"""Several independent copies of a tier on one machine, and vLLM's router before them.

This, not data-parallel flags, is how a dense model serves more requests: vLLM refuses those flags for one.
"""

from collections.abc import Sequence
from dataclasses import replace

from redline.engine.launch_plan import LaunchPlan
from redline.engine.router import Policy, router_plan
from redline.launch.render.argv import render_argv
from redline.launch.render.docker import secret_note
from redline.launch.render.words import set_flag


def replica_plans(plan: LaunchPlan, ports: Sequence[int], gpus: Sequence[str | None]) -> tuple[LaunchPlan, ...]:
    """Return one plan a copy: its own port, its own GPUs (`0,1`), on loopback, since only the router is for clients.

    `gpus` has one entry a copy; None leaves the choice to the engine, as on a machine without any.
    """
    return tuple(_replica(plan, number, port, ids) for number, (port, ids) in enumerate(zip(ports, gpus, strict=True)))


def _replica(plan: LaunchPlan, number: int, port: int, gpus: str | None) -> LaunchPlan:
    argv = set_flag(set_flag(plan.argv, "--host", "127.0.0.1"), "--port", str(port))
    env = dict(plan.env)
    if gpus is not None and plan.engine == "vllm":
        argv = set_flag(argv, "--device-ids", gpus)  # it keeps the links between all GPUs in sight, unlike the variable
    elif gpus is not None:
        env["CUDA_VISIBLE_DEVICES"] = gpus
    labels = {**plan.labels, "role": "replica", "replica": str(number)}
    return replace(plan, argv=argv, env=env, host="127.0.0.1", port=port, labels=labels)


def gpu_sets(replicas: int, per_replica: int) -> tuple[str | None, ...]:
    """Return the GPUs of each copy, the first ones for the first: `0,1` and `2,3`; None for each without GPUs."""
    if per_replica < 1:
        return (None,) * replicas
    return tuple(
        ",".join(str(index) for index in range(number * per_replica, (number + 1) * per_replica))
        for number in range(replicas)
    )


def render_replicas(plan: LaunchPlan, replicas: int, gpus_each: int, policy: Policy = Policy.CONSISTENT_HASH) -> str:
    """Return the commands of all copies and of the router as text. The router takes the tier's own port."""
    ports = [plan.port + 1 + number for number in range(replicas)]
    members = replica_plans(plan, ports, gpu_sets(replicas, gpus_each))
    router = router_plan(members, host=plan.host, port=plan.port, metrics_port=plan.port + 1 + replicas, policy=policy)
    parts = [f"# copy {number + 1} of {replicas}\n{render_argv(member)}" for number, member in enumerate(members)]
    note = secret_note(plan)
    parts.append(f"# the router, once all copies answer; clients use this one\n{render_argv(router)}")
    return note + "\n".join(parts)
