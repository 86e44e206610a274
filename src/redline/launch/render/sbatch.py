"""A tier as a Slurm batch script: one task a machine, ranks and the first machine's name from Slurm itself.

The command is a bash array of quoted words, so nothing in it is expanded; the four words that Slurm knows are the
only variables. The function is exported because a job's script lies on the first machine only.
"""

import shlex
from typing import Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.argv import group_flags
from redline.launch.render.docker import exposed
from redline.launch.render.multinode import need_vllm, network_env, topology_flags
from redline.launch.render.words import drop_flags
from redline.plan.spread import Spread

_NODES: Final = "$SLURM_NNODES"
_RANK: Final = "$SLURM_NODEID"
_MASTER: Final = "$REDLINE_MASTER"


def render_sbatch(plan: LaunchPlan, spread: Spread) -> str:
    """Return the script. `plan` is of the native form, with the world's tensor and pipeline sizes.

    Raises:
        UsageError: the plan is a container's, or its engine cannot span machines.
    """
    if plan.container is not None:
        raise UsageError(
            "A batch script runs the native form.", next_step="Leave the form out; containers are the cluster's own."
        )
    if spread.nodes > 1:
        need_vllm(plan)
    lines = [
        "#!/bin/bash",
        f"# {plan.slug} on {plan.engine} {plan.engine_version}, rendered by redline. Submit with: sbatch FILE",
        *_directives(plan, spread),
        "set -euo pipefail",
        "",
        *(f"export {name}={shlex.quote(value)}" for name, value in sorted({**plan.env, **network_env(spread)}.items())),
        *_secrets(plan),
    ]
    if spread.nodes > 1:
        lines += [
            'REDLINE_MASTER=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            "export REDLINE_MASTER",
        ]
    lines += ["", *_function(plan, spread), "export -f serve", "", "srun --kill-on-bad-exit=1 bash -c serve"]
    return "\n".join(lines) + "\n"


def _directives(plan: LaunchPlan, spread: Spread) -> list[str]:
    return [
        f"#SBATCH --job-name={job_name(plan)}",
        f"#SBATCH --nodes={spread.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={spread.gpus_per_node}",
        "#SBATCH --exclusive",
        "#SBATCH --output=%x-%j.log",
        "# Add your own: --partition, --account, --time.",
    ]


def _secrets(plan: LaunchPlan) -> list[str]:
    if not exposed(plan):
        return []
    return [
        f'export {name}="${{{source}:?set {source} before sbatch: it is the key that clients send}}"'
        for name in plan.secret_env
        for source in (plan.secret_aliases.get(name, name),)
    ]


def _function(plan: LaunchPlan, spread: Spread) -> list[str]:
    base = drop_flags(plan.argv, ("--host", "--port"))
    flags = topology_flags(spread, _NODES, _RANK, _MASTER) if spread.nodes > 1 else ()
    host, port = shlex.quote(plan.host), plan.port
    lines = ["serve() {", "  local command=("]
    lines += [f"    {piece}" for piece in group_flags(base)]
    lines += [f"    {' '.join(pair)}" for pair in _pairs(flags)]
    lines.append("  )")
    if spread.nodes > 1:
        if spread.interface is not None:
            lines.append(f"  VLLM_HOST_IP=$(ip -4 -o addr show dev {shlex.quote(spread.interface)} |")
            lines.append("    awk '{ split($4, part, \"/\"); print part[1]; exit }')")
            lines.append("  export VLLM_HOST_IP")
        lines += [
            f'  if [ "{_RANK}" -gt 0 ]; then',
            "    command+=(--headless)",
            "  else",
            f"    command+=(--host {host} --port {port})",
            "  fi",
        ]
    else:
        lines.append(f"  command+=(--host {host} --port {port})")
    return [*lines, '  exec "${command[@]}"', "}"]


def _pairs(flags: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return flags with their values; a variable is quoted so that it stays one word, anything else as it is."""
    names, values = flags[::2], flags[1::2]
    return [(name, f'"{value}"' if value.startswith("$") else value) for name, value in zip(names, values, strict=True)]


def job_name(plan: LaunchPlan) -> str:
    """Return a name for jobs and units: letters, digits and dashes."""
    return "redline-" + plan.slug.replace("/", "-").replace(".", "").replace("_", "-")
