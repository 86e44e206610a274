"""A launch plan as a systemd user unit, so that a tier comes back after a restart of the machine.

Quoting follows systemd.syntax(7) and systemd.service(5): words in double quotes with C escapes, `%` and `$` doubled.
"""

import re
from typing import Final

from redline.engine.launch_plan import LaunchPlan
from redline.errors import UsageError
from redline.launch.render.sbatch import job_name

_PLAIN: Final = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def render_systemd(plan: LaunchPlan) -> str:
    """Return the unit file. It is for the form that runs on the machine itself.

    Raises:
        UsageError: the plan is a container's, which the container's own daemon restarts.
    """
    if plan.container is not None:
        raise UsageError(
            "A unit runs the native or the embedded form.", next_step="Render the container as compose instead."
        )
    stop_s = round(plan.stop.grace_s) + 5
    lines = [
        f"# {plan.slug} on {plan.engine} {plan.engine_version}, rendered by redline.",
        f"# Save as ~/.config/systemd/user/{job_name(plan)}.service, then:",
        f"#   systemctl --user daemon-reload && systemctl --user enable --now {job_name(plan)}",
        "#   loginctl enable-linger            # to have it run while you are not logged in",
        "[Unit]",
        f"Description={plan.slug.replace('%', '%%')} (redline)",
        # Three failed starts in ten minutes are a fault to be looked at, not to be tried for ever.
        "StartLimitIntervalSec=600",
        "StartLimitBurst=3",
        "",
        "[Service]",
        "Type=exec",
        *(f"Environment={_word(f'{name}={value}')}" for name, value in sorted(plan.env.items())),
        *_secret_file(plan),
        f"ExecStart={_command(plan.argv)}",
        "Restart=on-failure",
        "RestartSec=10",
        "KillMode=mixed",
        f"TimeoutStopSec={stop_s}",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _secret_file(plan: LaunchPlan) -> list[str]:
    if not plan.secret_env:
        return []
    names = ", ".join(plan.secret_env)
    return [
        f"# Keys ({names}) as NAME=value, one a line, in a file of mode 0600; they stand in no unit and no argument.",
        "EnvironmentFile=-%h/.config/redline/server.env",
    ]


def _command(argv: tuple[str, ...]) -> str:
    """Return ExecStart: systemd wants an absolute program, and looks up a bare name only through env."""
    words = argv if argv[0].startswith("/") else ("/usr/bin/env", *argv)
    pieces: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and pieces[-1]:
            pieces.append([])
        pieces[-1].append(_word(word, dollars=True))
    return " \\\n  ".join(" ".join(piece) for piece in pieces)


def _word(text: str, *, dollars: bool = False) -> str:
    escaped = text.replace("%", "%%")
    if dollars:
        escaped = escaped.replace("$", "$$")
    if _PLAIN.fullmatch(escaped):
        return escaped
    quoted = escaped.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{quoted}"'
