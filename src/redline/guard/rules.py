"""All guards, by theme. Importing this registers them; `run_guards` asks each one."""

from redline.guard import attention, drafting, files, host, parallel, serving, surroundings, topology
from redline.guard.context import GuardContext
from redline.guard.registry import guard_ids, run_guards

__all__ = ["THEMES", "GuardContext", "guard_ids", "run_guards"]

THEMES = (serving, drafting, attention, parallel, topology, files, host, surroundings)
