"""A launch plan on disk: what a supervisor starts from, and what a restart starts again."""

import json
from pathlib import Path

from redline.engine.launch_plan import LaunchPlan, launch_plan_from_dict
from redline.launch.state import PLAN_FILE
from redline.record.codec import jsonable
from redline.record.files import read_json, write_atomic


def describe_plan(plan: LaunchPlan) -> str:
    """Return the plan as JSON text."""
    return json.dumps(jsonable(plan), indent=1) + "\n"


def write_plan(directory: Path, plan: LaunchPlan) -> None:
    """Write a server's plan.

    Raises:
        AccessError, DiskSpaceError: it cannot be written.
    """
    write_atomic(directory / PLAN_FILE, describe_plan(plan))


def read_plan(directory: Path) -> LaunchPlan | None:
    """Return a server's plan, or None where there is none that this version can read."""
    data = read_json(directory / PLAN_FILE)
    try:
        return launch_plan_from_dict(data) if isinstance(data, dict) else None
    except (KeyError, TypeError, AttributeError):
        return None
