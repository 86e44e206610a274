"""What vLLM refuses of a command line that spans GPUs or machines, and what it takes and serves badly.

Pure functions from the words of one rank's command, so that a rendering, a running tier and a user's own
ENGINE_ARGS are judged by the same table. Each finding names the line of vLLM's source that would refuse it later,
mostly after the weights are loaded.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Final

from redline.catalog.types import Model
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Severity
from redline.guard.parallel import undivided_heads
from redline.guard.registry import guard
from redline.guard.serving import LOOPBACK
from redline.plan.spread import Cut, Spread

VERSIONS: Final = "vLLM 0.33.0"
EXTERNAL_DP: Final = (
    "--data-parallel-rank",
    "-dpn",
    "--data-parallel-external-lb",
    "-dpe",
    "--data-parallel-hybrid-lb",
    "-dph",
    "--data-parallel-multi-port-external-lb",
)
_NODES: Final = ("--nnodes", "-n")
_RANK: Final = ("--node-rank", "-r")
_TENSOR: Final = ("--tensor-parallel-size", "-tp")
_PIPELINE: Final = ("--pipeline-parallel-size", "-pp")
_BLOCK_METHODS: Final = frozenset({"dflash", "dspark", "eagle3"})


def judge_command(argv: Sequence[str], model: Model) -> tuple[Finding, ...]:
    """Return what vLLM refuses of one rank's command."""
    return tuple(_refusals(_Words(argv), model))


def judge_spread(spread: Spread, model: Model, *, gpus_of_tier: int) -> tuple[Finding, ...]:
    """Return what is legal and still a poor choice. `gpus_of_tier` is how many GPUs the tier itself needs."""
    return tuple(_warnings(spread, model, gpus_of_tier))


def judge_router(host: str) -> tuple[Finding, ...]:
    """Return what is wrong with the address that a router listens on."""
    if host in LOOPBACK:
        return ()
    return (
        _finding(
            Severity.REFUSE,
            "router-open",
            f"A router on {host} could be reached by others, and it asks nobody for a key before it adds or removes "
            "servers: whoever reaches it may have requests, with their keys, sent to a machine of his own.",
            "Keep the router on 127.0.0.1, and put a proxy before it that lets through /v1 alone.",
            "vllm-router 0.1.17: POST /workers, /add_worker and /remove_worker answer 200 without a key",
            "vllm-router 0.1.17",
        ),
    )


class _Words:
    """Flags of a command with their values, as argparse would read them: the last one counts."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._values: dict[str, str | None] = {}
        for word, after in itertools.zip_longest(argv, argv[1:], fillvalue="-"):
            if word.startswith("-"):
                name, equals, value = word.partition("=")
                self._values[name] = value if equals else after if not after.startswith("-") else None

    def has(self, *names: str) -> bool:
        return any(name in self._values for name in names)

    def text(self, *names: str) -> str | None:
        return next((self._values[name] for name in names if name in self._values), None)

    def number(self, *names: str, default: int) -> int:
        text = self.text(*names)
        try:
            return int(text) if text is not None else default
        except ValueError:
            return default

    @property
    def drafting_method(self) -> str | None:
        """The method of the speculative configuration, in either spelling."""
        config = self.text("--speculative-config", "-sc")
        try:
            method = json.loads(config).get("method") if config else None
        except (ValueError, AttributeError):
            method = None
        return method or self.text("--spec-method")


def _refusals(words: _Words, model: Model) -> Iterator[Finding]:
    nodes = words.number(*_NODES, default=1)
    tensor, pipeline = words.number(*_TENSOR, default=1), words.number(*_PIPELINE, default=1)
    world, method = tensor * pipeline, words.drafting_method
    reason = undivided_heads(model.architecture, tensor)
    if reason is not None:
        yield _refuse(
            "tensor-parallel",
            f"Tensor parallelism over {tensor} GPUs does not divide {model.title}: {reason}.",
            f"Use one of {_legal_sizes(model)}, or several independent copies: --as replicas.",
            "vllm 0.33.0 config/model.py:1560, model_executor/models/qwen3_next.py:296-306",
        )
    if pipeline > 1 and method in _BLOCK_METHODS:
        yield _refuse(
            "drafter-pipeline",
            f"{pipeline} pipeline stages with a {method} drafter: {model.checkpoint or model.title} does not carry its "
            "hidden layers over stages, and vLLM says so only after loading the weights.",
            "Cut by tensor (--cut tensor), or switch drafting off: SPEC_N=0.",
            "vllm 0.33.0 v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:57",
        )
    external = [name for name in EXTERNAL_DP if words.has(name)]
    if external and model.dense:
        yield _refuse(
            "dense-data-parallel",
            f"{external[0]}: {model.title} is dense, and vLLM refuses external data parallelism for dense models.",
            "Run independent servers behind a router: --as replicas.",
            "vllm 0.33.0 engine/arg_utils.py:2455-2465; 0.27.1 engine/arg_utils.py:2090",
            "vLLM 0.27.1 to 0.33.0",
        )
    yield from _across_machines(words, nodes, world)


def _across_machines(words: _Words, nodes: int, world: int) -> Iterator[Finding]:
    backend = words.text("--distributed-executor-backend")
    if nodes > 1 and backend == "ray":
        yield _refuse(
            "ray-nnodes",
            f"--nnodes {nodes} with the ray executor: vLLM takes the one or the other.",
            "Leave --distributed-executor-backend ray out; or start a Ray cluster, and vLLM on its head without "
            "--nnodes.",
            "vllm 0.33.0 config/parallel.py:1107-1114",
        )
    if nodes > 1 and words.text("--data-parallel-backend", "-dpb") == "ray":
        yield _refuse(
            "ray-nnodes",
            f"--nnodes {nodes} with the ray data-parallel backend.",
            "Leave --data-parallel-backend ray out.",
            "vllm 0.33.0 engine/arg_utils.py:2390-2397",
        )
    if words.has("--headless") and words.number("--api-server-count", "-asc", default=0) > 0:
        yield _refuse(
            "headless-api-servers",
            "--headless with --api-server-count: a headless machine starts no API server.",
            "Give --api-server-count to rank 0 only.",
            "vllm 0.33.0 entrypoints/cli/serve.py:69-75",
        )
    if world % nodes:
        yield _refuse(
            "nodes-world",
            f"{world} GPUs do not divide over {nodes} machines.",
            "Use a number of GPUs that is a multiple of the machines.",
            "vllm 0.33.0 engine/arg_utils.py:2406-2413",
        )
    rank = words.number(*_RANK, default=0)
    if not 0 <= rank < nodes:
        yield _refuse(
            "node-rank",
            f"--node-rank {rank} of {nodes} machines.",
            f"Ranks go from 0 to {nodes - 1}.",
            "vllm 0.33.0 engine/arg_utils.py:2414-2420",
        )
    if words.has("--headless") and nodes > 1 and rank == 0:
        yield _refuse(
            "headless-rank-0",
            "--headless on rank 0: nobody would answer requests, since the API server runs there.",
            "Give --headless to the other ranks only.",
            "vllm 0.33.0 entrypoints/cli/serve.py:218-226",
        )


def _warnings(spread: Spread, model: Model, gpus_of_tier: int) -> Iterator[Finding]:
    if spread.nodes < 2:
        return
    if gpus_of_tier <= spread.gpus_per_node:
        yield _finding(
            Severity.WARN,
            "needless-span",
            f"The tier needs {gpus_of_tier} GPUs and one machine has {spread.gpus_per_node}: a copy that spans "
            f"{spread.nodes} machines is slower than {spread.nodes} copies, and fails with either machine.",
            "Render --as replicas, one copy a machine, with a router before them.",
            "every layer would wait for the network; peers and vLLM's recipes do the same",
        )
    if spread.crosses:
        speed = "RDMA carries it" if spread.network_fast else "on 1 or 10 Gbit Ethernet it decides the speed"
        yield _finding(
            Severity.NOTE if spread.network_fast else Severity.WARN,
            "tensor-over-network",
            f"Each of {model.architecture.layers} layers reduces over the network twice: {speed}.",
            "Test NCCL between the machines first (all_reduce_perf of nccl-tests), and name the interface: "
            "--interface NAME.",
            "vllm#58290: two machines of four GPUs hang in ncclCommInitRank; vLLM docs, parallelism and scaling",
        )
    if spread.cut is Cut.PIPELINE:
        yield _finding(
            Severity.NOTE,
            "pipeline-stages",
            f"{model.architecture.layers} layers in {spread.nodes} stages: one request alone uses one stage at a time; "
            "it pays with several at once.",
            "Serve several requests at once: MAX_NUM_SEQS of at least the number of stages.",
            "vLLM docs, parallelism and scaling",
        )


@guard("spans-machines")
def _spans_machines(context: GuardContext) -> Finding | None:
    words = _Words(context.extra_args)
    names = (*_NODES, *_RANK, "--headless", "--master-addr")
    flag = next((name for name in names if words.has(name)), None)
    if flag is None or context.tier.key.engine != "vllm":
        return None
    return _refuse(
        "spans-machines",
        f"{flag} in ENGINE_ARGS: redline starts one process on this machine, and it would wait for others that nobody "
        "starts.",
        f"`redline render {context.tier.slug} --as multinode --node A --node B` writes the command of each machine.",
        "vllm 0.33.0 entrypoints/cli/serve.py:218-226; config/parallel.py:1064",
    )


def _legal_sizes(model: Model) -> str:
    return ", ".join(str(size) for size in range(1, 33) if undivided_heads(model.architecture, size) is None)


def _refuse(rule_id: str, message: str, remedy: str, source: str, versions: str = VERSIONS) -> Finding:
    return _finding(Severity.REFUSE, rule_id, message, remedy, source, versions)


def _finding(
    severity: Severity, rule_id: str, message: str, remedy: str, source: str, versions: str = VERSIONS
) -> Finding:
    return Finding(rule_id=rule_id, severity=severity, message=message, remedy=remedy, source=source, versions=versions)
