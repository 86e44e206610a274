"""Guards about several GPUs: heads, data-parallel flags, links and the allocator, a split that starves the draft."""

import itertools

from redline.catalog.types import Architecture, DrafterKind
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Override, Severity
from redline.guard.registry import guard

EXPANDABLE = "expandable_segments:True"
_EXTERNAL_DP = ("--data-parallel-rank", "-dpn", "--data-parallel-external-lb", "-dpe", "--data-parallel-hybrid-lb")


@guard("tensor-parallel")
def _tensor_parallel(context: GuardContext) -> Finding | None:
    asked = context.tier.tensor_parallel
    if asked.value is None:
        return None
    reason = undivided_heads(context.model.architecture, asked.value)
    if reason is None:
        return None
    right = [str(count) for count in range(1, 17) if undivided_heads(context.model.architecture, count) is None]
    return Finding(
        rule_id="tensor-parallel",
        severity=Severity.REFUSE,
        message=f"TP={asked.value} ({asked.origin}) does not divide {context.model.title}: {reason}.",
        remedy=f"Use TP={', '.join(right[:-1])} or {right[-1]}.",
        source="vllm 0.33.0 config/model.py:1559, model_executor/models/qwen3_next.py:296-306",
        versions=context.engine_label,
    )


def undivided_heads(shape: Architecture, count: int) -> str | None:
    """Return which heads do not divide over `count` GPUs. Fewer cache heads than GPUs are repeated, in equal parts."""
    if shape.heads % count:
        return f"{shape.heads} attention heads over {count} GPUs"
    if shape.kv_heads % count and count % shape.kv_heads:
        return f"{shape.kv_heads} cache heads over {count} GPUs"
    linear = shape.linear
    if linear and (linear.key_heads % count or linear.value_heads % count):
        return f"{linear.key_heads} and {linear.value_heads} recurrent heads over {count} GPUs"
    return None


@guard("dense-data-parallel")
def _dense_data_parallel(context: GuardContext) -> Finding | None:
    flags = [word for word in context.extra_args if word.partition("=")[0] in _EXTERNAL_DP]
    if not flags or not context.model.dense or context.tier.key.engine != "vllm":
        return None
    return Finding(
        rule_id="dense-data-parallel",
        severity=Severity.REFUSE,
        message=f"{flags[0]} in ENGINE_ARGS: {context.model.title} is dense, and vLLM refuses external data "
        "parallelism for dense models.",
        remedy="Run independent servers with a router before them: `redline render SLUG --as replicas`.",
        source="vllm 0.33.0 engine/arg_utils.py:2456-2466; 0.27.1 engine/arg_utils.py:2090",
        versions="vLLM 0.27.1 to 0.33.0",
    )


@guard("engine-args-twice")
def _engine_args_twice(context: GuardContext) -> Finding | None:
    flags = [word.partition("=")[0] for word in context.extra_args if word.startswith("--")]
    twice = next((a for a, b in itertools.combinations(flags, 2) if a == b), None)
    ours = next((flag for flag in flags if flag in _OWN_FLAGS), None)
    if twice is None and ours is None:
        return None
    if ours is not None:
        message = f"{ours} in ENGINE_ARGS: redline gives {ours} itself, and of two the engine would take the last."
        remedy = f"Set {_OWN_FLAGS[ours]} instead."
    else:
        message = f"{twice} stands twice in ENGINE_ARGS; the engine would take the last and say nothing."
        remedy = "Give it once."
    return Finding(
        rule_id="engine-args-twice",
        severity=Severity.REFUSE,
        message=message,
        remedy=remedy,
        source="argparse; llama.cpp b11434 common/arg.cpp:836",
    )


_OWN_FLAGS = {
    "--port": "PORT",
    "--host": "BIND_HOST",
    "--max-model-len": "MAX_MODEL_LEN",
    "--ctx-size": "MAX_MODEL_LEN",
    "--tensor-parallel-size": "TP",
    "--pipeline-parallel-size": "PP",
    "--gpu-memory-utilization": "GPU_MEMORY_UTILIZATION",
    "--max-num-seqs": "MAX_NUM_SEQS",
    "--max-num-batched-tokens": "MAX_NUM_BATCHED_TOKENS",
    "--kv-cache-dtype": "KV_CACHE_DTYPE",
    "--attention-backend": "ATTN_BACKEND",
    "--speculative-config": "SPEC_N",
    "--spec-draft-n-max": "SPEC_N",
    "--spec-type": "SPEC_N",
    "--served-model-name": "SERVED_NAME",
    "--alias": "SERVED_NAME",
    "--override-generation-config": "TEMP, TOP_P and the other sampler names",
    "--default-chat-template-kwargs": "ENABLE_THINKING and REASONING_EFFORT",
    "--tensor-split": "TENSOR_SPLIT",
    "--split-mode": "SPLIT_MODE",
    "--device-ids": "GPUS",
}


@guard("all-reduce-allocator")
def _all_reduce_allocator(context: GuardContext) -> Finding | None:
    mode, allocator = context.tier.nvlink_mode, context.tier.cuda_allocator
    given = not allocator.origin.startswith("rule:")
    if mode.value not in ("force_on", "pcie_p2p") or not given or EXPANDABLE not in (allocator.value or ""):
        return None
    return Finding(
        rule_id="all-reduce-allocator",
        severity=Severity.REFUSE,
        message=f"NVLINK_MODE={mode.value} turns vLLM's own all-reduce on, and PYTORCH_CUDA_ALLOC_CONF="
        f"{allocator.value} ({allocator.origin}) puts its buffers into memory that cannot be shared: the boot ends in "
        "cudaIpcGetMemHandle, invalid argument.",
        remedy="Leave PYTORCH_CUDA_ALLOC_CONF out; redline leaves expandable segments out with fast links.",
        source="club-3090 scripts/detect_nvlink.sh; vllm 0.33.0 distributed/device_communicators/custom_all_reduce.py",
        versions=context.engine_label,
    )


@guard("draft-on-last-card")
def _draft_on_last_card(context: GuardContext) -> Finding | None:
    tier = context.tier
    gpus = context.catalog.topologies[tier.key.topology].gpus
    if tier.key.engine != "llamacpp" or gpus < 2 or tier.split_mode.value != "layer" or tier.spec_n.value == 0:
        return None
    if context.drafter.kind not in (DrafterKind.MTP, DrafterKind.DFLASH2):
        return None
    shares = _shares(tier.tensor_split.value, gpus)
    if shares is not None and shares[-1] < sum(shares) / len(shares):
        return None
    given = tier.tensor_split.value or "none, so even"
    return Finding(
        rule_id="draft-on-last-card",
        severity=Severity.REFUSE,
        message=f"The draft context lies whole on the last card, and the split ({given}, {tier.tensor_split.origin}) "
        "leaves it no room: llama.cpp would go on without pipeline parallelism, and say so in one line of its log.",
        remedy="Give the last card less, such as TENSOR_SPLIT=0.55,0.45, or SPEC_N=0.",
        source="club-3090 q8kv.yml: 20,346 and 23,888 MiB with 1,1 against 22,504 and 22,574 MiB with 0.55,0.45",
        versions="llama.cpp b10236 and later",
        override=Override.IGNORE_VRAM,
    )


def _shares(text: str | None, count: int) -> list[float] | None:
    """Return the shares of a split, or None where it is not given or does not name every card."""
    if not text:
        return None
    try:
        shares = [float(part) for part in text.replace("/", ",").split(",")]
    except ValueError:
        return None
    return shares if len(shares) == count and sum(shares) > 0 else None
