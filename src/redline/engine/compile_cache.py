"""Where vLLM keeps what it has compiled, apart by the GPUs it was compiled for. Knows paths; compiles nothing.

`--device-ids N` makes the worker's device `cuda:N` (vllm 0.33.0 v1/worker/gpu_worker.py:491), and compiled code names
its device. The cache's folder is called after configuration and rank alone (compilation/backends.py:1105,
compilation/decorators.py:593), so a server on GPU 0 takes up what was compiled on GPU 1 and ends with `CUDA driver
error: invalid argument` (vllm#38962; docs/gpu.md). Nor do two servers that start at once read what the other writes.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from redline.engine.launch_plan import LaunchPlan

CACHE_VARIABLE: Final = "VLLM_CACHE_ROOT"
_FLAG: Final = "--device-ids"


def cache_by_gpus(plan: LaunchPlan, environ: Mapping[str, str]) -> LaunchPlan:
    """Return a plan whose compiled code lies in a folder of its own for the GPUs that it names.

    Below the folder that the plan's own environment names, else `environ`'s, else vLLM's usual one. A plan that names
    no GPUs, or is no native one of vLLM, is returned as it is.
    """
    if plan.engine != "vllm" or plan.form != "native" or _FLAG not in plan.argv[:-1]:
        return plan
    gpus = re.sub(r"[^0-9A-Za-z]+", "-", plan.argv[plan.argv.index(_FLAG) + 1]).strip("-")
    root = plan.env.get(CACHE_VARIABLE) or environ.get(CACHE_VARIABLE) or _usual(environ)
    return replace(plan, env={**plan.env, CACHE_VARIABLE: str(PurePosixPath(root) / f"gpus-{gpus}")})


def _usual(environ: Mapping[str, str]) -> str:
    """Return the folder that vLLM takes by itself (vllm 0.33.0 envs.py:714)."""
    home = PurePosixPath(environ.get("HOME") or "~")
    return str(PurePosixPath(environ.get("XDG_CACHE_HOME") or home / ".cache") / "vllm")
