"""Finds an engine by its id in the catalogue."""

from typing import Final

from redline.engine.llamacpp import LlamaCpp
from redline.engine.protocol import Engine
from redline.engine.vllm import Vllm
from redline.errors import UsageError

_ENGINES: Final[dict[str, Engine]] = {"llamacpp": LlamaCpp(), "vllm": Vllm()}


def get_engine(engine_id: str) -> Engine:
    """Return the engine.

    Raises:
        UsageError: this version of redline cannot start that engine.
    """
    if engine_id not in _ENGINES:
        raise UsageError(
            f"This version of redline cannot start {engine_id}.",
            next_step=f"Engines it starts: {', '.join(sorted(_ENGINES))}.",
        )
    return _ENGINES[engine_id]
