"""Guards about drafting: depth against the checkpoint, runner, target, pipeline, context of the drafter."""

from redline.catalog.types import DrafterKind
from redline.guard.context import BLOCK_DRAFTERS, GuardContext
from redline.guard.finding import Finding, Severity
from redline.guard.registry import experiment, guard
from redline.settings import FALSE_WORDS


@guard("spec-depth")
def _spec_depth(context: GuardContext) -> Finding | None:
    depth = context.tier.spec_n
    if context.drafter.kind != DrafterKind.NONE or depth.value == 0:
        return None
    return Finding(
        rule_id="spec-depth",
        severity=Severity.REFUSE,
        message=f"SPEC_N={depth.value} ({depth.origin}) asks for drafting, and {context.tier.slug} has no drafter.",
        remedy="Leave SPEC_N out, or choose a tier of depth super.",
        source=context.tier.drafter.origin,
    )


@guard("drafter-depth")
def _drafter_depth(context: GuardContext) -> Finding | None:
    depth, drafter = context.tier.spec_n, context.drafter
    if drafter.kind not in BLOCK_DRAFTERS or depth.value == 0:
        return None
    draft = context.disk.draft if context.disk else None
    fact = drafter.checkpoint
    on_disk = draft.block_size if draft else None
    block = on_disk or (fact.block_size if fact else None)
    where = draft.path if draft and on_disk else f"the catalogue's record of {drafter.id}"
    if block is None:
        return Finding(
            rule_id="drafter-depth",
            severity=Severity.REFUSE,
            message=f"Nothing says for which block {drafter.title} was trained, so no depth can be called right.",
            remedy="Give its checkpoint's block_size in the catalogue, or SPEC_N=0 to switch drafting off.",
            source="vllm 0.33.0 model_executor/models/qwen3_dflash2.py:256",
            versions=context.engine_label,
            override=experiment("drafter-depth"),
        )
    if 1 + depth.value == block:
        return None
    return Finding(
        rule_id="drafter-depth",
        severity=Severity.REFUSE,
        message=f"SPEC_N={depth.value} ({depth.origin}) does not match the drafter: block_size {block} wants "
        f"{block - 1} ({where}). It would load, and quietly draft worse: the block size sets where the convolution "
        "resets, and shapes no weight.",
        remedy=f"Use SPEC_N={block - 1}, SPEC_N=0 to switch drafting off, or a drafter exported with block_size "
        f"{1 + depth.value}. As an experiment every result is labelled.",
        source="club-3090 tier hierarchy post, comment of aklaiber82; vllm 0.33.0 "
        "model_executor/models/qwen3_dflash2.py:256; llama.cpp b11434 common/speculative.cpp:1075",
        versions="all vLLM with DFlash2; llama.cpp cuts a larger depth",
        override=experiment("drafter-depth"),
    )


@guard("drafter-differs")
def _drafter_differs(context: GuardContext) -> Finding | None:
    draft, fact = context.disk.draft if context.disk else None, context.drafter.checkpoint
    if not context.drafts_blocks or draft is None or fact is None or draft.block_size in (None, fact.block_size):
        return None
    return Finding(
        rule_id="drafter-differs",
        severity=Severity.REFUSE,
        message=f"The drafter on disk has block_size {draft.block_size} and the catalogue's {context.drafter.id} has "
        f"{fact.block_size}: {draft.path} is not the checkpoint that this tier is for.",
        remedy="Put the tier's own drafter there (`redline get`), or declare this one in a catalogue file.",
        source=fact.source,
        override=experiment("drafter-differs"),
    )


@guard("drafter-range")
def _drafter_range(context: GuardContext) -> Finding | None:
    depths, depth = context.drafter.depths, context.tier.spec_n
    if depths is None or depth.value == 0 or depths.minimum <= depth.value <= depths.maximum:
        return None
    return Finding(
        rule_id="drafter-range",
        severity=Severity.WARN,
        message=f"SPEC_N={depth.value} ({depth.origin}) lies outside {depths.minimum} to {depths.maximum}, where "
        f"{context.drafter.title} has been measured.",
        remedy=f"Use SPEC_N={depths.minimum} to {depths.maximum}, or measure it: nothing is known of it.",
        source=depths.source,
    )


@guard("drafter-target")
def _drafter_target(context: GuardContext) -> Finding | None:
    drafter = context.drafter
    if not drafter.targets or context.model.id in drafter.targets or context.tier.spec_n.value == 0:
        return None
    return Finding(
        rule_id="drafter-target",
        severity=Severity.REFUSE,
        message=f"{drafter.title} was trained on {', '.join(drafter.targets)} and not on {context.model.id}: it reads "
        "the target's hidden layers and shares its vocabulary.",
        remedy="Choose a tier whose drafter is this model's, or SPEC_N=0.",
        source=drafter.source,
    )


@guard("drafter-runner")
def _drafter_runner(context: GuardContext) -> Finding | None:
    if not context.drafts_blocks:
        return None
    version = context.version
    if version is None or not version.can("native_dflash2"):
        return Finding(
            rule_id="drafter-runner",
            severity=Severity.REFUSE,
            message=f"{context.engine_label} is not known to run DFlash2 natively. Without its candidate heads the "
            "same checkpoint drafts as DFlash1, and says nothing.",
            remedy="Use the pinned engine, or SPEC_N=0.",
            source="vllm#52816; vllm 0.33.0 config/vllm.py:3133",
            versions=context.engine_label,
        )
    runner = context.layers.environ.get("VLLM_USE_V2_MODEL_RUNNER", "").strip().lower()
    if context.tier.key.engine != "vllm" or runner not in FALSE_WORDS:
        return None
    return Finding(
        rule_id="drafter-runner",
        severity=Severity.REFUSE,
        message=f"VLLM_USE_V2_MODEL_RUNNER={runner} forces the V1 runner, which has no candidate heads: the drafter "
        "would degrade to DFlash1 and say nothing.",
        remedy="Unset VLLM_USE_V2_MODEL_RUNNER, or SPEC_N=0.",
        source="vllm 0.33.0 config/vllm.py:748 and 3133",
        versions=context.engine_label,
    )


@guard("drafter-pipeline")
def _drafter_pipeline(context: GuardContext) -> Finding | None:
    stages = context.tier.pipeline_parallel
    if (stages.value or 1) < 2 or context.tier.spec_n.value == 0:
        return None
    if context.drafts_blocks:
        return Finding(
            rule_id="drafter-pipeline",
            severity=Severity.REFUSE,
            message=f"PP={stages.value} ({stages.origin}) with a block drafter: {context.model.checkpoint} does not "
            "carry its hidden layers over pipeline stages, and vLLM says so only after loading the weights.",
            remedy="Use TP over the same GPUs with PP=1, or SPEC_N=0.",
            source="vllm 0.33.0 v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:57",
            versions=context.engine_label,
        )
    return Finding(
        rule_id="drafter-pipeline",
        severity=Severity.WARN,
        message=f"PP={stages.value} with the built-in drafting layer is not proven: boots that failed and corrupted "
        "text were reported up to 0.29.",
        remedy="Use TP with PP=1, or SPEC_N=0.",
        source="vllm#49355, vllm#57755",
        versions=context.engine_label,
    )


@guard("drafter-context")
def _drafter_context(context: GuardContext) -> Finding | None:
    if not context.drafts_blocks:
        return None
    draft, fact = context.disk.draft if context.disk else None, context.drafter.checkpoint
    limit = (draft.context_max if draft else None) or (fact.context_max if fact else None)
    asked = context.tier.max_model_len
    if limit is None or asked.value <= limit:
        return None
    return Finding(
        rule_id="drafter-context",
        severity=Severity.REFUSE,
        message=f"A context of {asked.value} ({asked.origin}) is more than the drafter's own {limit}. vLLM widens its "
        "position table without a word, and nobody has measured its drafts beyond what it was trained for.",
        remedy=f"Use MAX_MODEL_LEN={limit}, SPEC_N=0, or measure it as a labelled experiment.",
        source="vllm 0.33.0 config/speculative.py:1504-1511 and 1807",
        versions=context.engine_label,
        override=experiment("drafter-context"),
    )


@guard("drafter-fp8-depth")
def _drafter_fp8_depth(context: GuardContext) -> Finding | None:
    hazard = context.catalog.hazards.get("dflash2-fp8-depth")
    if hazard is None or context.tier.key.engine != "vllm" or not context.drafts_blocks:
        return None
    limit = hazard.context_above or 0
    if not context.tier.kv_cache_dtype.value.startswith("fp8") or context.tier.max_model_len.value <= limit:
        return None
    return Finding(
        rule_id="drafter-fp8-depth",
        severity=Severity.WARN,
        message=f"DFlash2 with an fp8 cache above {limit:,} tokens: {hazard.effect}.",
        remedy="Measure decode at the depth you use. The ultra tier (bf16 cache) or SPEC_N=0 avoid the path.",
        source=hazard.source,
        versions=hazard.versions,
    )
