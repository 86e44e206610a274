"""vLLM's key-value pool as pure functions: which layers share a block, how large it is, how many a request needs.

Knows the rules of the allocator; the constants that differ by version or back end come in as `AllocatorRules`, the
layers of a model as `CacheLayers`. Knows no architecture, no GPU and no file. The rules are those of vLLM 0.33.0,
vllm/v1/core/kv_cache_planning.py (grouping, page unification, admission), vllm/v1/kv_cache_interface.py (bytes and
blocks of one layer), vllm/platforms/interface.py `_align_hybrid_block_size`, and core/kv_cache_utils.py (reported
tokens). Not modelled: block-outermost layouts, MLA, chunked local attention, context parallelism.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

GROUP_PADDING_LIMIT: Final = 1.5  # kv_cache_planning.py: pad small buckets up while max < 1.5 * min


class CacheKind(StrEnum):
    """How a layer's cache grows."""

    FULL = "full"
    SLIDING = "sliding"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayers:
    """Layers of one kind and shape on one GPU.

    Attention: `token_bytes` a layer, from `heads` x `width` values of `value_bytes`. State: `state_bytes` a layer.
    """

    name: str
    kind: CacheKind
    layers: int
    heads: int = 0
    width: int = 0
    value_bytes: int = 0
    state_bytes: int = 0
    window: int | None = None

    @property
    def token_bytes(self) -> int:
        """Bytes that one token takes in one layer: a key and a value for each head."""
        return self.heads * self.width * 2 * self.value_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorRules:
    """Constants of one engine version and back end; the catalogue's `kv_geometries` hold them with sources."""

    rounding_tokens: int
    rounding_uncached_tokens: int
    default_block_tokens: int
    state_blocks: int
    state_blocks_uncached: int
    checkpoint_blocks: int
    concurrent_batches: int
    retained_tokens: int
    null_blocks: int
    sliding_block_sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Layers that share one block table. `count` tables of this kind exist, each over at most `width` layers."""

    name: str
    kind: CacheKind
    layers: int
    count: int
    block_tokens: int
    window: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolGeometry:
    """How a model's cache is cut into blocks on one GPU.

    `block_tokens` is what the engine logs as attention block size; `pool_block_bytes` is what one block of the pool
    takes; `group_layers` is how many layers stand side by side in it, padding included.
    """

    block_tokens: int
    page_bytes: int
    group_layers: int
    pool_block_bytes: int
    groups: tuple[Group, ...]
    rules: AllocatorRules
    batched_tokens: int
    depth: int
    prefix_caching: bool

    @property
    def padding_share(self) -> float:
        """Share of the attention pages that no layer uses."""
        attention = [group for group in self.groups if group.kind is not CacheKind.STATE]
        slots = sum(group.count * self.group_layers for group in attention)
        return 1 - sum(group.layers for group in attention) / slots if slots else 0.0


@dataclass(frozen=True, slots=True)
class _Layer:
    layers: CacheLayers
    block_tokens: int
    page_bytes: int


class GeometryError(ValueError):
    """The layers cannot share a pool, or there are none; the message says why."""


def pool_geometry(
    layers: Iterable[CacheLayers],
    rules: AllocatorRules,
    *,
    batched_tokens: int,
    depth: int = 0,
    prefix_caching: bool = True,
) -> PoolGeometry:
    """Return how the pool is cut.

    Args:
        layers: every kind of layer, the target's own before the drafter's.
        rules: constants of the engine.
        batched_tokens: most tokens of one step (`max_num_batched_tokens`).
        depth: tokens drafted a step; each state group holds as many blocks more.
        prefix_caching: whether states are kept aligned to blocks, which takes one block more.

    Raises:
        GeometryError: no layer keeps a cache, or a value is not positive.
    """
    kinds = [item for item in layers if item.layers > 0]
    _check(kinds, batched_tokens, depth)
    block_tokens = aligned_block_tokens(kinds, rules, prefix_caching=prefix_caching)
    sized = [_sized(item, block_tokens, rules) for item in kinds]
    shared: dict[str, object] = {
        "rules": rules,
        "batched_tokens": batched_tokens,
        "depth": depth,
        "prefix_caching": prefix_caching,
    }
    if _one_type(kinds):
        return _single_group(sized, block_tokens, shared)
    pages = _unify_pages(sized)
    buckets: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], _Layer] = {}
    for item in pages:
        key = _bucket_key(item)
        buckets[key] += item.layers.layers
        first.setdefault(key, item)
    width = _group_width(buckets.values())
    groups = tuple(
        Group(
            name=first[key].layers.name,
            kind=first[key].layers.kind,
            layers=count,
            count=-(-count // width),
            block_tokens=first[key].block_tokens,
            window=first[key].layers.window,
        )
        for key, count in buckets.items()
    )
    # A bucket smaller than the width is spread over its own count of tables, so the widest table decides.
    widest = max(-(-group.layers // group.count) for group in groups)
    page = pages[0].page_bytes
    return PoolGeometry(
        block_tokens=block_tokens,
        page_bytes=page,
        group_layers=widest,
        pool_block_bytes=page * widest,
        groups=groups,
        **shared,  # type: ignore[arg-type]
    )


def aligned_block_tokens(layers: Iterable[CacheLayers], rules: AllocatorRules, *, prefix_caching: bool = True) -> int:
    """Return tokens a block: enough that an attention page holds a whole recurrent state, rounded up."""
    kinds = tuple(layers)
    attention = next((item for item in kinds if item.kind is not CacheKind.STATE), None)
    state = max((item.state_bytes for item in kinds if item.kind is CacheKind.STATE), default=0)
    if attention is None or state == 0:
        return rules.default_block_tokens
    # Checkpoints of a prefill land on block boundaries only while prefix caching keeps states aligned.
    step = math.lcm(
        rules.rounding_tokens if prefix_caching else rules.rounding_uncached_tokens, rules.default_block_tokens
    )
    return max(rules.default_block_tokens, step * -(-state // (step * attention.token_bytes)))


def request_blocks(geometry: PoolGeometry, context_tokens: int) -> int:
    """Return the blocks that one request of a full context holds at most, over all groups."""
    return sum(group.count * table_blocks(geometry, group, context_tokens) for group in geometry.groups)


def pool_blocks(geometry: PoolGeometry, available_bytes: int) -> int:
    """Return the blocks that fit into the bytes the engine has left for the cache; 0 when none are left."""
    return max(0, available_bytes) // geometry.pool_block_bytes


def boots(geometry: PoolGeometry, blocks: int, context_tokens: int) -> bool:
    """Whether the engine starts: one full request and the null block must fit (vllm#47272)."""
    return blocks > 0 and blocks - geometry.rules.null_blocks >= request_blocks(geometry, context_tokens)


def pool_tokens(geometry: PoolGeometry, blocks: int, context_tokens: int) -> int:
    """Return what the engine logs as GPU KV cache size: its concurrency times the context, cut to an integer."""
    return int(concurrency(geometry, blocks, context_tokens) * context_tokens)


def concurrency(geometry: PoolGeometry, blocks: int, context_tokens: int) -> float:
    """Return how many full-context requests the pool holds."""
    return blocks / request_blocks(geometry, context_tokens)


def request_bytes(geometry: PoolGeometry, context_tokens: int) -> int:
    """Return bytes of the pool that one full request takes, the null block not counted."""
    return request_blocks(geometry, context_tokens) * geometry.pool_block_bytes


def largest_context(geometry: PoolGeometry, blocks: int, ceiling_tokens: int) -> int:
    """Return the longest context at which the engine starts, at most `ceiling_tokens`; 0 when not even one token."""
    return _last_true(lambda context: boots(geometry, blocks, context), ceiling_tokens)


def blocks_of_tokens(geometry: PoolGeometry, tokens: int, context_tokens: int) -> int | None:
    """Return the block count that the engine would report as exactly `tokens`, or None: no integer gives it."""
    near = round(tokens * request_blocks(geometry, context_tokens) / context_tokens)
    return next(
        (n for n in (near, near - 1, near + 1) if n > 0 and pool_tokens(geometry, n, context_tokens) == tokens), None
    )


def _last_true(test: Callable[[int], bool], ceiling: int) -> int:
    low, high = 0, max(0, ceiling)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if test(middle) else (low, middle - 1)
    return low


def table_blocks(geometry: PoolGeometry, group: Group, context: int) -> int:
    """Return the blocks that one table of a group holds at most for one request."""
    rules = geometry.rules
    if group.kind is CacheKind.STATE:
        if not geometry.prefix_caching:
            return rules.state_blocks_uncached + geometry.depth
        return rules.state_blocks + rules.checkpoint_blocks + geometry.depth
    if group.kind is CacheKind.SLIDING:
        in_flight = rules.concurrent_batches * geometry.batched_tokens
        held = min((group.window or 0) - 1 + rules.retained_tokens + in_flight, context)
        # One more, since the window may start anywhere inside its first block.
        return -(-held // group.block_tokens) + 1
    return -(-context // group.block_tokens)


def _check(kinds: list[CacheLayers], batched_tokens: int, depth: int) -> None:
    if not kinds:
        raise GeometryError("no layer keeps a cache")
    if batched_tokens < 1 or depth < 0:
        raise GeometryError(f"batched tokens {batched_tokens} and depth {depth} must not be negative")
    for item in kinds:
        if (item.state_bytes if item.kind is CacheKind.STATE else item.token_bytes) < 1:
            raise GeometryError(f"the {item.name} layers keep no bytes")
        if item.kind is CacheKind.SLIDING and (item.window or 0) < 1:
            raise GeometryError(f"the {item.name} layers have no window")


def _sized(item: CacheLayers, block_tokens: int, rules: AllocatorRules) -> _Layer:
    """Give layers their own block: sliding-window layers take the largest that their kernels offer and that fits."""
    if item.kind is CacheKind.STATE:
        return _Layer(item, block_tokens, item.state_bytes)
    own = block_tokens
    if item.kind is CacheKind.SLIDING and rules.sliding_block_sizes:
        fitting = [size for size in rules.sliding_block_sizes if size <= block_tokens]
        own = max(fitting) if fitting else min(rules.sliding_block_sizes)
    return _Layer(item, own, own * item.token_bytes)


def _one_type(kinds: list[CacheLayers]) -> bool:
    """Whether all layers need the same slots, so that one block table serves them all, whatever their pages."""
    first = kinds[0]
    if first.kind is CacheKind.STATE:
        return all(item.kind is CacheKind.STATE and item.state_bytes == first.state_bytes for item in kinds)
    return all(item.kind is first.kind and item.window == first.window for item in kinds)


def _single_group(sized: list[_Layer], block_tokens: int, shared: dict[str, object]) -> PoolGeometry:
    total = sum(item.layers.layers for item in sized)
    first = sized[0]
    return PoolGeometry(
        block_tokens=block_tokens,
        page_bytes=first.page_bytes,
        group_layers=total,
        pool_block_bytes=sum(item.page_bytes * item.layers.layers for item in sized),
        groups=(
            Group(
                name=first.layers.name,
                kind=first.layers.kind,
                layers=total,
                count=1,
                block_tokens=block_tokens,
                window=first.layers.window,
            ),
        ),
        **shared,  # type: ignore[arg-type]
    )


def _unify_pages(sized: list[_Layer]) -> list[_Layer]:
    """Give every layer the largest page: attention by longer blocks where that divides evenly, else by padding."""
    largest = max(item.page_bytes for item in sized)
    unified = []
    for item in sized:
        if item.layers.kind is not CacheKind.STATE and largest % item.page_bytes == 0:
            unified.append(
                replace(item, block_tokens=item.block_tokens * (largest // item.page_bytes), page_bytes=largest)
            )
        else:
            unified.append(replace(item, page_bytes=largest))
    return unified


def _bucket_key(item: _Layer) -> tuple[object, ...]:
    layers = item.layers
    if layers.kind is CacheKind.STATE:
        return (layers.kind, layers.state_bytes)
    return (layers.kind, layers.heads, layers.width, layers.value_bytes, layers.window, item.block_tokens)


def _group_width(counts: Iterable[int]) -> int:
    """Return layers a group: the smallest bucket, or the largest while padding up to it stays small."""
    sizes = list(counts)
    return max(sizes) if max(sizes) < min(sizes) * GROUP_PADDING_LIMIT else min(sizes)
