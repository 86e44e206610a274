"""What an engine reports when it starts, as `BootFacts`. Knows log lines; no plan, no GPU and no process.

llama.cpp has no block pool, so its facts are its build, its context and nothing of blocks; vLLM's lines are known to
`vllm_boot`. The last statement of a kind counts, as the last boot does.
"""

import re
from collections.abc import Iterable
from typing import Final

from redline.engine.vllm_boot import parse_boot_log
from redline.plan.types import BootFacts

# llama.cpp tools/server/server.cpp and server-context.cpp, captured
_BUILD: Final = re.compile(r"build_info: (\S+)")
_SLOT_CONTEXT: Final = re.compile(r"n_ctx_slot = (\d+)")


def parse_boot_facts(engine: str, lines: Iterable[str]) -> BootFacts:
    """Return what a boot log of an engine states; what it does not state is None."""
    if engine == "vllm":
        return parse_boot_log("\n".join(lines))
    if engine == "llamacpp":
        return _llamacpp(lines)
    return BootFacts(engine=engine)


def _llamacpp(lines: Iterable[str]) -> BootFacts:
    build: str | None = None
    context: int | None = None
    for line in lines:
        if match := _BUILD.search(line):
            build = match[1]
        if match := _SLOT_CONTEXT.search(line):
            context = int(match[1])
    return BootFacts(engine="llamacpp", engine_version=build, context=context)
