"""A launch plan of the docker form as `docker run`: the very argv that would be run, and as text.

The server listens on all addresses inside the container and is published on the tier's own address, 127.0.0.1 unless
asked. Restart is off: a container that crashes at start must be seen, not restarted in silence.
"""

import shlex

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.argv import group_flags, join_lines


def docker_argv(plan: LaunchPlan) -> tuple[str, ...]:
    """Return the command that runs the plan in a container.

    Raises:
        UsageError: the plan is of another form.
    """
    container = plan.container
    if container is None:
        raise UsageError(
            f"{plan.slug} has no container form.",
            next_step="Render it as argv; the embedded engine runs inside redline only.",
        )
    words = ["docker", "run", "--rm", f"--name={container_name(plan)}", "--restart=no"]
    chosen = ",".join(container.gpus) if container.gpus else None
    # The inner quotation marks are docker's own: without them it would read the commas as further options.
    words.append(f'--gpus="device={chosen}"' if chosen else f"--gpus={container.gpu_count}")
    if container.ipc_host:
        words.append("--ipc=host")
    if container.shm_gib is not None and not container.ipc_host:
        words.append(f"--shm-size={container.shm_gib}g")
    words.append(f"--publish={publish(plan)}")
    words += [f"--volume={mount.source}:{mount.target}{':ro' if mount.read_only else ''}" for mount in plan.mounts]
    words += [f"--volume={name}:{path}" for name, path in container.volumes.items()]
    words += [f"--env={name}={value}" for name, value in plan.env.items()]
    if exposed(plan):
        words += [f"--env={name}" for name in plan.secret_env]  # by name: the value comes from the environment
    if container.entrypoint:
        words.append(f"--entrypoint={container.entrypoint[0]}")
    return (*words, container.image, *container_command(plan))


def render_docker(plan: LaunchPlan) -> str:
    """Return the docker command as text, one flag a line.

    Raises:
        UsageError: the plan is of another form.
    """
    argv = docker_argv(plan)
    assert plan.container is not None
    image = argv.index(plan.container.image)
    text = join_lines([*_docker_pieces(argv[:image]), plan.container.image, *group_flags(argv[image + 1 :])])
    return f"{secret_note(plan)}{text}"


def _docker_pieces(words: tuple[str, ...]) -> list[str]:
    return ["docker run", *(shlex.quote(word) for word in words[2:])]


def container_command(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what follows the image: without the words that its entry point already is."""
    words = 2 if plan.argv[:2] == ("vllm", "serve") else 1
    return plan.argv[words:]


def container_name(plan: LaunchPlan) -> str:
    """Return a name that no other tier and no other port has."""
    words = plan.slug.replace("/", "-").replace(".", "")
    return f"redline-{words}-{plan.port}"


def publish(plan: LaunchPlan) -> str:
    """Return where the container's port appears on this machine."""
    assert plan.container is not None
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    return f"{host}:{plan.port}:{plan.container.port}"


def exposed(plan: LaunchPlan) -> bool:
    """Whether others than this machine reach the server, so that it must ask for a key."""
    return plan.host not in ("127.0.0.1", "localhost", "::1")


def secret_note(plan: LaunchPlan) -> str:
    """Return a comment that says which variables must be set before, or nothing where none must."""
    if not exposed(plan):
        return ""
    lines = [f"# {name} must be set: it is the key that clients send.\n" for name in plan.secret_env]
    return "".join(lines)
