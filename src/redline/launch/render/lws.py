"""A tier as Kubernetes objects: a LeaderWorkerSet (v1), and a service before its leaders.

Leader and worker differ in `--headless`, address, port and probes. Rank, size and the leader's address come from what
the controller puts into every container: LWS_WORKER_INDEX, LWS_GROUP_SIZE, LWS_LEADER_ADDRESS.
"""

from typing import Any, Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.multinode import need_vllm, network_env, topology_flags
from redline.launch.render.words import drop_flags
from redline.plan.spread import Spread

API: Final = "leaderworkerset.x-k8s.io/v1"
NAME_LABEL: Final = "leaderworkerset.sigs.k8s.io/name"
MODELS_CLAIM: Final = "redline-models"
SECRET: Final = "redline-api-key"  # noqa: S105 -- the name of an object, no secret
_PERIOD_S: Final = 10


def render_lws(plan: LaunchPlan, spread: Spread, replicas: int) -> str:
    """Return the manifests as YAML. `plan` is of the docker form, with the world's tensor and pipeline sizes.

    Raises:
        UsageError: the plan has no container, or its engine cannot span machines.
    """
    import yaml

    head = [
        f"# {plan.slug} on {plan.engine} {plan.engine_version}, rendered by redline.",
        f"# Before: the LeaderWorkerSet controller; a claim {MODELS_CLAIM} of what `redline get {plan.slug}` gets;",
        f"# kubectl create secret generic {SECRET} --from-literal=key=...   (pods are reached by the whole cluster)",
    ]
    text = yaml.safe_dump_all(lws_objects(plan, spread, replicas), sort_keys=False, width=10_000, allow_unicode=True)
    return "\n".join(head) + "\n" + text


def lws_objects(plan: LaunchPlan, spread: Spread, replicas: int) -> list[dict[str, Any]]:
    """Return the objects as plain values.

    Raises:
        UsageError: see `render_lws`.
    """
    if plan.container is None:
        raise UsageError(f"{plan.slug} has no container form.", next_step="Kubernetes needs a tier with one.")
    if spread.nodes > 1:
        need_vllm(plan)
    name = object_name(plan)
    leaders = {"app": name, "role": "leader"}
    template = {
        "size": spread.nodes,
        "restartPolicy": "RecreateGroupOnPodRestart",
        "leaderTemplate": {"metadata": {"labels": leaders}, "spec": _pod(plan, spread, leader=True)},
        "workerTemplate": {
            "metadata": {"labels": {"app": name, "role": "worker"}},
            "spec": _pod(plan, spread, leader=False),
        },
    }
    return [
        {
            "apiVersion": API,
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name},
            "spec": {"replicas": replicas, "leaderWorkerTemplate": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {
                "selector": {NAME_LABEL: name, "role": "leader"},
                "ports": [{"name": "http", "port": plan.container.port, "targetPort": "http"}],
            },
        },
    ]


def object_name(plan: LaunchPlan) -> str:
    """Return a name that Kubernetes takes: lower case, digits and dashes, at most 52 characters for pods' suffixes."""
    words = plan.slug.partition("/")[2].lower().replace("_", "-").replace(".", "")
    return words[:52].rstrip("-")


def _pod(plan: LaunchPlan, spread: Spread, *, leader: bool) -> dict[str, Any]:
    return {
        "containers": [_container(plan, spread, leader=leader)],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{_shm_gib(plan)}Gi"}},
            {"name": "models", "persistentVolumeClaim": {"claimName": MODELS_CLAIM, "readOnly": True}},
        ],
    }


def _shm_gib(plan: LaunchPlan) -> int:
    assert plan.container is not None
    return plan.container.shm_gib or 16


def _container(plan: LaunchPlan, spread: Spread, *, leader: bool) -> dict[str, Any]:
    container = plan.container
    assert container is not None
    program, arguments = plan.argv[:2], drop_flags(plan.argv[2:], ("--host", "--port"))
    words = [_literal(word) for word in arguments]
    if spread.nodes > 1:
        words += topology_flags(spread, "$(LWS_GROUP_SIZE)", "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)")
    words += ["--host", "0.0.0.0", "--port", str(container.port)] if leader else ["--headless"]  # noqa: S104 -- a pod is reached by its own address
    found: dict[str, Any] = {
        "name": "engine",
        "image": container.image,
        "command": list(program),
        "args": words,
        "env": _env(plan, spread),
        "resources": {"limits": {"nvidia.com/gpu": str(spread.gpus_per_node)}},
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 -- a path inside the container
            *({"name": "models", "mountPath": mount.target, "readOnly": True} for mount in plan.mounts),
        ],
    }
    if leader:
        found["ports"] = [{"name": "http", "containerPort": container.port}]
        # Three times the longest boot that the plan waits for: a cold image has its kernels to compile as well.
        failures = round(3 * plan.readiness.timeout_s / _PERIOD_S)
        found["startupProbe"] = _probe(plan, failures)
        found["readinessProbe"] = _probe(plan, 3)
    return found


def _probe(plan: LaunchPlan, failures: int) -> dict[str, Any]:
    get = {"path": plan.readiness.health_path, "port": "http"}
    return {"httpGet": get, "periodSeconds": _PERIOD_S, "failureThreshold": failures}


def _env(plan: LaunchPlan, spread: Spread) -> list[dict[str, Any]]:
    plain = {**plan.env, **(network_env(spread) if spread.nodes > 1 else {})}
    rows: list[dict[str, Any]] = [{"name": name, "value": _literal(value)} for name, value in sorted(plain.items())]
    key = {"secretKeyRef": {"name": SECRET, "key": "key"}}
    rows += [{"name": name, "valueFrom": key} for name in plan.secret_env]
    if spread.nodes > 1:
        rows.append({"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}})
    return rows


def _literal(text: str) -> str:
    """Return text in which Kubernetes finds no variable: `$(NAME)` is one, `$$(NAME)` is not."""
    return text.replace("$(", "$$(")
