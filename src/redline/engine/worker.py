"""The embedded engine: llama.cpp's own HTTP server inside this process (package xllamacpp).

Run as `python -m redline.engine.worker --model FILE --port N ...`. It must not outlive its supervisor, so it asks
the kernel to be killed with its parent, and also ends when the pipe given by `--life-fd` closes: the first covers a
parent that dies while llama.cpp holds the interpreter, the second a parent that was gone before the first was set.
"""

import argparse
import os
import signal
import threading
from typing import Any

from redline.rig.process import die_with_parent


def main() -> None:
    """Load the model, serve until a signal or the end of the supervisor."""
    options = _parse_arguments()
    _die_with_parent(options.life_fd)
    import xllamacpp

    params = _build_params(xllamacpp, options)
    # The server starts answering 503 while it loads, and 200 once the constructor returns.
    server = xllamacpp.Server(params)
    print(f"worker ready at {server.listening_address}", flush=True)
    while True:
        signal.pause()


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="redline.engine.worker", description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ctx", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--ubatch", type=int, default=512)
    parser.add_argument("--cache-type", default="f16")
    parser.add_argument("--cache-ram", type=int, default=0)
    parser.add_argument("--temp", type=float)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--min-p", type=float)
    parser.add_argument("--presence-penalty", type=float)
    parser.add_argument("--repeat-penalty", type=float)
    parser.add_argument("--spec-type")
    parser.add_argument("--spec-key", type=int)
    parser.add_argument("--spec-draft", type=int)
    parser.add_argument("--spec-hits", type=int)
    parser.add_argument("--draft-model")
    parser.add_argument("--draft-type")
    parser.add_argument("--draft-max", type=int)
    parser.add_argument("--draft-least", type=float, default=0.0)
    parser.add_argument("--life-fd", type=int)
    return parser.parse_args()


def _die_with_parent(life_fd: int | None) -> None:
    die_with_parent()
    if life_fd is not None:
        threading.Thread(target=_end_with_pipe, args=(life_fd,), daemon=True).start()


def _end_with_pipe(life_fd: int) -> None:
    os.read(life_fd, 1)  # the supervisor never writes: this returns only when its end is closed
    os._exit(0)


def _build_params(library: Any, options: argparse.Namespace) -> Any:
    params = library.CommonParams()
    params.model.path = options.model
    params.model_alias = {options.alias}
    params.hostnames = [options.host]
    params.port = options.port
    params.n_ctx = options.ctx
    params.n_parallel = options.parallel
    params.n_ubatch = options.ubatch
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.cache_type_k = params.cache_type_v = getattr(library.ggml_type, f"GGML_TYPE_{options.cache_type.upper()}")
    params.cache_ram_mib = options.cache_ram
    params.endpoint_metrics = True
    params.endpoint_props = False  # GET /props is always there; this switch would let clients change settings
    params.fit_params = False  # redline planned the memory; llama.cpp must not shrink the context silently
    params.ui = False
    if key := os.environ.get("REDLINE_API_KEY"):
        params.api_keys = [key]
    _set_sampling(params, options)
    # A drafter's file switches drafting on by itself, whatever the types say: without these flags none is set.
    params.speculative.types = [
        getattr(library.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name.upper().replace('-', '_')}")
        for name in (options.spec_type, options.draft_type)
        if name
    ] or [library.common_speculative_type.COMMON_SPECULATIVE_TYPE_NONE]
    if options.spec_type:
        _set_lookup(params, options)
    if options.draft_type:
        _set_drafter(params, options)
    return params


def _set_sampling(params: Any, options: argparse.Namespace) -> None:
    sampling = params.sampling
    for field, value in (
        ("temp", options.temp),
        ("top_p", options.top_p),
        ("top_k", options.top_k),
        ("min_p", options.min_p),
        ("penalty_present", options.presence_penalty),
        ("penalty_repeat", options.repeat_penalty),
    ):
        if value is not None:
            setattr(sampling, field, value)


def _set_drafter(params: Any, options: argparse.Namespace) -> None:
    draft = params.speculative.draft
    draft.mparams.path = options.draft_model
    draft.n_max = options.draft_max
    draft.p_min = options.draft_least
    # One thread: a draft is a few milliseconds of small products, and threads that meet after each cost more than they
    # bring. With a busy machine a step took 80 ms with one and 101 with two (drafter/step_cost.py).
    draft.cpuparams.n_threads = draft.cpuparams_batch.n_threads = 1


def _set_lookup(params: Any, options: argparse.Namespace) -> None:
    settings = getattr(params.speculative, options.spec_type.replace("-", "_"))
    settings.size_n = options.spec_key
    settings.size_m = options.spec_draft
    settings.min_hits = options.spec_hits


if __name__ == "__main__":
    main()
