"""What a vLLM plan is made from, as frozen values of its own. Knows nothing of slugs, rules or this machine."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from redline.catalog.types import Architecture, DrafterKind
from redline.plan.geometry import AllocatorRules, CacheKind, CacheLayers, PoolGeometry, pool_geometry
from redline.plan.weights import WeightBytes

# Bytes of a cached value by vLLM's --kv-cache-dtype (v1/kv_cache_interface.py, types without packed scales).
VALUE_BYTES: Final = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "bf16": 2,
    "fp16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}
STATE_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}
CONV_STATE_BYTES: Final = 2  # the convolution's state keeps the model's own 16-bit type


class UnknownPlanError(Exception):
    """The question cannot be answered from what is known; the message says what is missing. It becomes a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterShape:
    """What drafts: `layers` with a cache of their own, `heads` x `width` wide, and bytes of weights."""

    kind: DrafterKind = DrafterKind.NONE
    depth: int = 0
    layers: int = 0
    heads: int = 0
    width: int = 0
    window: int | None = None
    sharded_bytes: int = 0
    replicated_bytes: int = 0

    def on_card(self, tensor_parallel: int) -> int:
        """Return bytes of the drafter's own weights on one GPU."""
        return self.sharded_bytes // tensor_parallel + self.replicated_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmInputs:
    """One configuration of one model on vLLM.

    `weight_format` is the id of the catalogue's weight format; `block_size` is the engine's --block-size, None its
    own choice; `patched_allocator` names a patch that replaces
    vLLM's own grouping, which this planner does not model.
    """

    name: str
    model: str
    architecture: Architecture
    context_max: int
    engine_version: str
    weights: WeightBytes
    weight_format: str
    tensor_parallel: int
    gpu_memory_utilization: float
    max_model_len: int
    max_num_seqs: int = 1
    batched_tokens: int = 8192
    kv_cache_dtype: str = "auto"
    drafter: DrafterShape = DrafterShape()
    attention_backend: str | None = None
    gdn_prefill: str | None = None
    pipeline_parallel: int = 1
    prefix_caching: bool = True
    block_size: int | None = None
    graphs: bool = True
    vision: bool = False
    patched_allocator: str | None = None

    def changed(self, **values: Any) -> Self:
        """Return these inputs with some values changed."""
        return replace(self, **values)


def cache_layers(inputs: VllmInputs) -> tuple[CacheLayers, ...]:
    """Return the layers that keep a cache on one GPU, the target's before the drafter's.

    Raises:
        UnknownPlanError: a cache type or a split that is not modelled.
    """
    a, tp = inputs.architecture, inputs.tensor_parallel
    value_bytes = VALUE_BYTES.get(inputs.kv_cache_dtype)
    if value_bytes is None:
        raise UnknownPlanError(
            f"no formula for a cache of type {inputs.kv_cache_dtype!r} (known: {', '.join(sorted(VALUE_BYTES))})"
        )
    check_split(a, tp)
    heads = max(1, a.kv_heads // tp)
    shape = {"heads": heads, "width": a.head_dim, "value_bytes": value_bytes}
    mtp = a.mtp_layers if inputs.drafter.kind is DrafterKind.MTP and inputs.drafter.depth else 0
    layers = [CacheLayers(name="full attention", kind=CacheKind.FULL, layers=a.full_attention_layers + mtp, **shape)]
    if a.linear:
        layers.append(_state_layers(a, tp, inputs.drafter.depth))
    if a.sliding:
        layers.append(
            CacheLayers(
                name="sliding window", kind=CacheKind.SLIDING, layers=a.sliding.layers, window=a.sliding.window, **shape
            )
        )
    drafter = inputs.drafter
    if drafter.layers and drafter.depth:
        layers.append(
            CacheLayers(
                name="drafter",
                kind=CacheKind.SLIDING if drafter.window else CacheKind.FULL,
                layers=drafter.layers,
                heads=max(1, drafter.heads // tp),
                width=drafter.width,
                value_bytes=value_bytes,
                window=drafter.window,
            )
        )
    return tuple(item for item in layers if item.layers)


def geometry_of(inputs: VllmInputs, rules: AllocatorRules) -> PoolGeometry:
    """Return how the pool of these inputs is cut.

    Raises:
        UnknownPlanError: an architecture or type that is not modelled.
        GeometryError: numbers that no pool can have.
    """
    return pool_geometry(
        cache_layers(inputs),
        rules,
        batched_tokens=inputs.batched_tokens,
        depth=inputs.drafter.depth,
        prefix_caching=inputs.prefix_caching,
    )


def check_split(architecture: Architecture, tensor_parallel: int) -> None:
    """Check that the heads can be split.

    Raises:
        UnknownPlanError: they cannot; vLLM refuses such a start.
    """
    a = architecture
    allowed = a.tensor_parallel
    if tensor_parallel < 1 or a.heads % tensor_parallel:
        raise UnknownPlanError(f"{a.heads} attention heads cannot be split over {tensor_parallel} GPUs")
    if allowed and tensor_parallel not in allowed:
        raise UnknownPlanError(f"this model is split over {', '.join(map(str, allowed))} GPUs, not {tensor_parallel}")
    if a.kv_heads % tensor_parallel and tensor_parallel % a.kv_heads:
        raise UnknownPlanError(f"{a.kv_heads} key-value heads cannot be split over {tensor_parallel} GPUs")
    if a.linear and (a.linear.key_heads % tensor_parallel or a.linear.value_heads % tensor_parallel):
        raise UnknownPlanError(f"the recurrent layers' heads cannot be split over {tensor_parallel} GPUs")


def _state_layers(architecture: Architecture, tp: int, depth: int) -> CacheLayers:
    """Bytes of one gated-delta-net state: convolution inputs and the recurrent matrix.

    Source: vLLM 0.33.0 mamba_utils.py gated_delta_net_state_shape.
    """
    linear = architecture.linear
    assert linear is not None
    channels = 2 * linear.key_heads * linear.key_head_dim + linear.value_heads * linear.value_head_dim
    conv = channels // tp * (linear.conv_kernel - 1 + depth) * CONV_STATE_BYTES
    matrix = linear.value_heads // tp * linear.value_head_dim * linear.key_head_dim * STATE_BYTES[linear.state_dtype]
    return CacheLayers(name="recurrent state", kind=CacheKind.STATE, layers=linear.layers, state_bytes=conv + matrix)
