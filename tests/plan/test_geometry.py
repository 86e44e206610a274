"""The allocator's rules: known numbers of the 27B shape, and what must hold for any shape."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.conftest import MakeInputs

from redline.plan.geometry import (
    AllocatorRules,
    CacheKind,
    CacheLayers,
    GeometryError,
    PoolGeometry,
    blocks_of_tokens,
    boots,
    concurrency,
    largest_context,
    pool_blocks,
    pool_geometry,
    pool_tokens,
    request_blocks,
    request_bytes,
)
from redline.plan.inputs import geometry_of

GIB = 2**30
RULES = AllocatorRules(
    rounding_tokens=16,
    rounding_uncached_tokens=16,
    default_block_tokens=16,
    state_blocks=2,
    state_blocks_uncached=1,
    checkpoint_blocks=0,
    concurrent_batches=2,
    retained_tokens=0,
    null_blocks=1,
)

# Tokens a block and GiB a GPU of one 262,144-token request, as published for vLLM 0.20 to 0.29.
KNOWN = [
    (1, "fp8", "none", 1568, 8.33),
    (1, "fp8", "mtp3", 1600, 9.29),
    (1, "fp8", "dflash7", 1648, 11.68),
    (2, "fp8", "none", 1568, 4.16),
    (2, "fp8", "mtp3", 1600, 4.64),
    (2, "fp8", "dflash7", 1648, 5.84),
    (2, "bfloat16", "none", 784, 8.16),
    (2, "bfloat16", "mtp3", 800, 8.90),
    (2, "bfloat16", "dflash7", 832, 10.93),
    (4, "bfloat16", "none", 784, 4.08),
    (4, "bfloat16", "mtp3", 800, 4.45),
    (4, "fp8", "dflash7", 1648, 2.92),
    (8, "fp8", "none", 784, 2.04),
    (8, "bfloat16", "mtp3", 400, 4.35),
]


@pytest.mark.parametrize(("tp", "kv", "drafter", "block", "gib"), KNOWN)
def test_known_blocks_and_costs(make: MakeInputs, tp: int, kv: str, drafter: str, block: int, gib: float) -> None:
    geometry = geometry_of(make("int4", drafter, tensor_parallel=tp, kv_cache_dtype=kv), RULES)
    assert geometry.block_tokens == block
    assert request_bytes(geometry, 262144) / GIB == pytest.approx(gib, abs=0.006)


def test_a_drafter_of_five_layers_collapses_the_groups(make: MakeInputs) -> None:
    geometry = geometry_of(make("int4", "dflash7"), RULES)
    assert geometry.group_layers == 5
    assert [(group.name, group.count) for group in geometry.groups] == [
        ("full attention", 4),
        ("recurrent state", 10),
        ("drafter", 1),
    ]
    assert geometry.padding_share == pytest.approx(1 - 21 / 25)


def test_dense_model_is_one_group() -> None:
    layers = [CacheLayers(name="full", kind=CacheKind.FULL, layers=32, heads=8, width=128, value_bytes=2)]
    geometry = pool_geometry(layers, RULES, batched_tokens=8192)
    assert geometry.pool_block_bytes == 16 * 32 * 8 * 128 * 2 * 2
    assert request_blocks(geometry, 4096) == 256


def test_padding_up_while_it_stays_small() -> None:
    """12 sliding and 13 full layers become two groups of 13, as kv_cache_planning.py says of gpt-oss with eagle."""
    shape: dict[str, Any] = {"heads": 8, "width": 64, "value_bytes": 2}
    layers = [
        CacheLayers(name="full", kind=CacheKind.FULL, layers=13, **shape),
        CacheLayers(name="slide", kind=CacheKind.SLIDING, layers=12, window=128, **shape),
    ]
    assert pool_geometry(layers, RULES, batched_tokens=2048).group_layers == 13


@pytest.mark.parametrize(
    "layers",
    [
        [],
        [CacheLayers(name="full", kind=CacheKind.FULL, layers=1)],
        [CacheLayers(name="slide", kind=CacheKind.SLIDING, layers=1, heads=1, width=1, value_bytes=1)],
    ],
)
def test_what_no_pool_can_have_is_refused(layers: list[CacheLayers]) -> None:
    with pytest.raises(GeometryError):
        pool_geometry(layers, RULES, batched_tokens=8192)


def test_batched_tokens_and_depth_must_make_sense(make: MakeInputs) -> None:
    layers = [CacheLayers(name="full", kind=CacheKind.FULL, layers=1, heads=1, width=8, value_bytes=2)]
    with pytest.raises(GeometryError):
        pool_geometry(layers, RULES, batched_tokens=0)
    with pytest.raises(GeometryError):
        pool_geometry(layers, RULES, batched_tokens=1, depth=-1)


heads = st.sampled_from([1, 2, 4, 8])
widths = st.sampled_from([64, 128, 256])


@st.composite
def geometries(draw: st.DrawFn) -> PoolGeometry:
    """Draw a pool of any mixture of layers."""
    shape = {"heads": draw(heads), "width": draw(widths), "value_bytes": draw(st.sampled_from([1, 2]))}
    layers = [CacheLayers(name="full", kind=CacheKind.FULL, layers=draw(st.integers(1, 64)), **shape)]
    if draw(st.booleans()):
        state = draw(st.integers(1024, 4_000_000))
        layers.append(CacheLayers(name="s", kind=CacheKind.STATE, layers=draw(st.integers(1, 64)), state_bytes=state))
    if draw(st.booleans()):
        window = draw(st.integers(1, 8192))
        count = draw(st.integers(1, 48))
        layers.append(
            CacheLayers(
                name="w",
                kind=CacheKind.SLIDING,
                layers=count,
                window=window,
                heads=draw(heads),
                width=draw(widths),
                value_bytes=shape["value_bytes"],
            )
        )
    batched = draw(st.integers(32, 65536))
    return pool_geometry(layers, RULES, batched_tokens=batched, depth=draw(st.integers(0, 15)))


contexts = st.integers(1, 400_000)
memories = st.integers(0, 200 * GIB)


@given(geometries(), contexts, contexts)
def test_longer_requests_take_no_fewer_blocks(geometry: PoolGeometry, one: int, other: int) -> None:
    short, long = sorted((one, other))
    assert 0 < request_blocks(geometry, short) <= request_blocks(geometry, long)


@given(geometries(), memories, st.integers(1, 400_000))
def test_largest_context_is_the_edge(geometry: PoolGeometry, memory: int, ceiling: int) -> None:
    blocks = pool_blocks(geometry, memory)
    largest = largest_context(geometry, blocks, ceiling)
    assert 0 <= largest <= ceiling
    assert largest == 0 or boots(geometry, blocks, largest)
    assert largest == ceiling or not boots(geometry, blocks, largest + 1)


@given(geometries(), st.integers(1, 100_000), contexts)
def test_reported_tokens_give_the_blocks_back(geometry: PoolGeometry, blocks: int, context: int) -> None:
    tokens = pool_tokens(geometry, blocks, context)
    found = blocks_of_tokens(geometry, tokens, context)
    assert found is None or pool_tokens(geometry, found, context) == tokens
    if context >= request_blocks(geometry, context):  # below it, several blocks share a token count
        assert found == blocks
    assert tokens <= concurrency(geometry, blocks, context) * context


@given(geometries(), memories)
def test_blocks_fill_the_memory_and_no_more(geometry: PoolGeometry, memory: int) -> None:
    blocks = pool_blocks(geometry, memory)
    assert blocks * geometry.pool_block_bytes <= memory < (blocks + 1) * geometry.pool_block_bytes
    assert pool_blocks(geometry, -memory - 1) == 0


@given(geometries())
def test_every_layer_has_a_place(geometry: PoolGeometry) -> None:
    for group in geometry.groups:
        assert group.count * geometry.group_layers >= group.layers
    assert geometry.pool_block_bytes >= geometry.page_bytes > 0
    assert 0 <= geometry.padding_share < 1
