"""Gets vLLM's configuration objects without a GPU, a tokenizer or weights.

Known: what to set before vLLM is imported, and how to make a `VllmConfig` from a config.json alone. Not known: argument
lists (`parse.py`), layers and caches (`skeleton.py`). Works only in the environment that `conformance/setup` makes.
"""

import os
import sys
from pathlib import Path
from typing import Any

ENGINE_VERSION = "0.33.0"
HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / ".conformance"
SHAPES = HERE / "shapes"


class NotTheEnvironmentError(SystemExit):
    """The interpreter is not the one of the conformance environment, or holds another vLLM."""


def prepare() -> None:
    """Set what vLLM reads at import, and check that it is the version this stage speaks of.

    Raises:
        NotTheEnvironmentError: vLLM is missing, or of another version.
    """
    os.environ.setdefault("VLLM_CACHE_ROOT", str(ENVIRONMENT / "cache"))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"  # standard output carries the answers
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import vllm
    except ImportError:
        message = f"{sys.executable} has no vLLM. Run conformance/setup, then .conformance/venv/bin/python -m ..."
        raise NotTheEnvironmentError(message) from None
    if vllm.__version__ != ENGINE_VERSION:
        raise NotTheEnvironmentError(f"this is vLLM {vllm.__version__}, the stage speaks of {ENGINE_VERSION}")
    import vllm.config.vllm

    # Without Triton vLLM would choose the old model runner (config/vllm.py:752), which takes no DFlash2 drafter.
    vllm.config.vllm.HAS_TRITON = True


def engine_config(engine_args: Any, *, tokenizer: bool = False) -> Any:
    """Return the `VllmConfig` of some `EngineArgs`, as the engine on a GPU would see it.

    Two things differ without a GPU and are put back: asynchronous scheduling is off on CPUs, and the executor follows
    from it. Neither is a check of an argument.
    """
    engine_args.skip_tokenizer_init = not tokenizer
    engine_args.load_format = "dummy"
    config = engine_args.create_engine_config()
    if engine_args.async_scheduling is not False:
        config.scheduler_config.async_scheduling = True
    return config
