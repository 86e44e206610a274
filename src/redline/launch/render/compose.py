"""A launch plan of the docker form as a compose file. The project's name is the tier's and the port's own."""

from typing import Any

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.docker import container_command, container_name, exposed, publish


def render_compose(plan: LaunchPlan) -> str:
    """Return the compose file.

    Raises:
        UsageError: the plan is of another form.
    """
    import yaml

    head = [f"# {plan.slug} on {plan.engine} {plan.engine_version}, rendered by redline."]
    if exposed(plan):
        head.append("# REDLINE_API_KEY must be set: it is the key that clients send.")
    body = yaml.safe_dump(compose_project(plan), sort_keys=False, width=10_000, allow_unicode=True)
    return "\n".join(head) + "\n" + body


def compose_project(plan: LaunchPlan) -> dict[str, Any]:
    """Return the project as plain values, every `$` doubled where compose would read a variable.

    Raises:
        UsageError: the plan is of another form.
    """
    container = plan.container
    if container is None:
        raise UsageError(
            f"{plan.slug} has no container form.",
            next_step="Render it as argv; the embedded engine runs inside redline only.",
        )
    name = container_name(plan)
    service: dict[str, Any] = {"image": container.image, "container_name": name, "restart": "no"}
    if container.entrypoint:
        service["entrypoint"] = list(container.entrypoint)
    service["command"] = [_literal(word) for word in container_command(plan)]
    if plan.env or exposed(plan):
        service["environment"] = {key: _literal(value) for key, value in plan.env.items()}
    if exposed(plan):
        for key in plan.secret_env:
            source = plan.secret_aliases.get(key, key)
            service["environment"][key] = f"${{{source}:?set {source}}}"
    service["ports"] = [publish(plan)]
    service["volumes"] = [
        *(f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}" for mount in plan.mounts),
        *(f"{volume}:{path}" for volume, path in container.volumes.items()),
    ]
    if container.ipc_host:
        service["ipc"] = "host"
    elif container.shm_gib is not None:
        service["shm_size"] = f"{container.shm_gib}gb"
    device: dict[str, Any] = {"driver": "nvidia"}
    device |= {"device_ids": list(container.gpus)} if container.gpus else {"count": container.gpu_count}
    service["deploy"] = {"resources": {"reservations": {"devices": [device | {"capabilities": ["gpu"]}]}}}
    project: dict[str, Any] = {"name": name, "services": {"server": service}}
    if container.volumes:
        # Named, not per project: what one tier compiled, the next one finds.
        project["volumes"] = {volume: {"name": volume} for volume in container.volumes}
    return project


def _literal(text: str) -> str:
    return text.replace("$", "$$")
