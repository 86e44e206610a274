"""Guards about numbers and kernels: cache types, FlashAttention, four-bit weights with eight-bit activations."""

from redline.catalog.types import Quantization
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Severity
from redline.guard.registry import guard

FP8_CACHES = ("fp8", "fp8_e4m3", "fp8_e5m2")
# vLLM 0.33.0 fa_utils.py:252: FlashAttention 4 has no quantised cache for heads of this size.
_HEAD_DIM_WITHOUT_FP8_ON_FA4 = 256


@guard("flash-attention-fp8")
def _flash_attention_fp8(context: GuardContext) -> Finding | None:
    backend, cache = context.tier.attention_backend, context.tier.kv_cache_dtype
    if backend.value != "FLASH_ATTN" or cache.value not in FP8_CACHES:
        return None
    wide_heads = context.model.architecture.head_dim == _HEAD_DIM_WITHOUT_FP8_ON_FA4
    unable = {
        compute: number
        for compute, number in context.flash_attention().items()
        if number < 3 or (number == 4 and wide_heads) or cache.value == "fp8_e5m2"
    }
    if not unable:
        return None
    where = ", ".join(f"compute {compute} runs FlashAttention {number}" for compute, number in sorted(unable.items()))
    return Finding(
        rule_id="flash-attention-fp8",
        severity=Severity.REFUSE,
        message=f"FLASH_ATTN ({backend.origin}) does not read a {cache.value} cache ({cache.origin}) here: {where}.",
        remedy="KV_CACHE_DTYPE=bfloat16 keeps FlashAttention; leaving ATTN_BACKEND out keeps the fp8 cache on "
        "FlashInfer, with slower drafting.",
        source="vllm 0.33.0 v1/attention/backends/fa_utils.py:99-107, 252, 282-312",
        versions=context.engine_label,
    )


@guard("cache-type")
def _cache_type(context: GuardContext) -> Finding | None:
    cache, version = context.tier.kv_cache_dtype, context.version
    if version is None or not version.kv_cache_dtypes or cache.value in version.kv_cache_dtypes:
        return None
    return Finding(
        rule_id="cache-type",
        severity=Severity.REFUSE,
        message=f"KV_CACHE_DTYPE={cache.value} ({cache.origin}) is no cache type of {context.engine_label}.",
        remedy=f"It takes: {', '.join(version.kv_cache_dtypes)}.",
        source=version.source,
        versions=context.engine_label,
    )


@guard("cache-weights")
def _cache_weights(context: GuardContext) -> Finding | None:
    cache, quantization = context.tier.kv_cache_dtype, context.artifact.quantization
    if cache.value != "fp8_e5m2" or quantization is None or quantization.method != "fp8":
        return None
    return Finding(
        rule_id="cache-weights",
        severity=Severity.REFUSE,
        message=f"KV_CACHE_DTYPE=fp8_e5m2 ({cache.origin}) does not go with fp8 weights: vLLM refuses it at load.",
        remedy="Use KV_CACHE_DTYPE=fp8_e4m3.",
        source="vllm 0.33.0 model_executor/layers/attention/attention.py:205-220",
        versions=context.engine_label,
    )


@guard("w4a8-weights")
def _w4a8_weights(context: GuardContext) -> Finding | None:
    asked, quantization = context.tier.w4a8, context.artifact.quantization
    if not asked.value or _is_symmetric_int4(quantization):
        return None
    return Finding(
        rule_id="w4a8-weights",
        severity=Severity.REFUSE,
        message=f"W4A8=1 ({asked.origin}) needs symmetric four-bit weights, and {context.artifact.title} has none.",
        remedy="Leave W4A8 out, or choose a tier of the speed series.",
        source="vllm 0.33.0 model_executor/layers/quantization/utils/marlin_utils.py:720-733",
        versions=context.engine_label,
    )


@guard("w4a8-engine")
def _w4a8_engine(context: GuardContext) -> Finding | None:
    asked, version = context.tier.w4a8, context.version
    if not asked.value or not _is_symmetric_int4(context.artifact.quantization):
        return None
    assert context.artifact.quantization is not None
    method = context.artifact.quantization.method
    capability = f"w4a8_{method.replace('auto_round', 'autoround')}"
    if version is not None and version.can(capability):
        return None
    claim = version.capabilities.get(capability) if version else None
    return Finding(
        rule_id="w4a8-engine",
        severity=Severity.REFUSE,
        message=f"W4A8=1 ({asked.origin}) is not wired for {method} weights in {context.engine_label}: the variable "
        "would be read and nothing would come of it.",
        remedy="Leave W4A8 out. Numbers made with it elsewhere came from a patched engine.",
        source=claim.source if claim else f"no claim of {capability} for {context.engine_label}",
        versions=context.engine_label,
    )


def _is_symmetric_int4(quantization: Quantization | None) -> bool:
    floating = quantization is not None and ("fp" in quantization.method or "modelopt" in quantization.method)
    return quantization is not None and quantization.bits == 4 and quantization.symmetric is True and not floating


@guard("flashinfer-compiler")
def _flashinfer_compiler(context: GuardContext) -> Finding | None:
    if context.tier.key.engine != "vllm" or context.form != "native" or context.nvcc is not False:
        return None
    chosen = context.tier.attention_backend.value
    implied = chosen is None and context.tier.kv_cache_dtype.value in FP8_CACHES
    if chosen != "FLASHINFER" and not implied:
        return None
    return Finding(
        rule_id="flashinfer-compiler",
        severity=Severity.REFUSE,
        message=f"{context.tier.slug} runs on FlashInfer, which compiles kernels at first use, and no nvcc is here. "
        "vLLM would switch FlashInfer off with a warning and fall to another backend.",
        remedy="Install the CUDA toolkit and set CUDA_HOME, install flashinfer-cubin, use --via docker, or choose the "
        "ultra tier (FlashAttention).",
        source="vllm 0.33.0 utils/flashinfer.py:61-105",
        versions=context.engine_label,
    )
