"""llama.cpp's bytes: against its own buffer reports, and against boots whose memory others published."""

from dataclasses import replace

import pytest

from redline.catalog.load import load_catalog
from redline.catalog.types import Catalog
from redline.plan.gguf import (
    CACHE_VALUE_BYTES,
    GgufInputs,
    cache_bytes,
    device_terms,
    host_compute_bytes,
    measured,
    state_bytes,
    unknown_reason,
)
from redline.units import MIB

SMALL = "smollm2-135m"


def _inputs(catalog: Catalog, model: str, **values: object) -> GgufInputs:
    settings: dict[str, object] = {"file_bytes": 100_000_000, "context": 8192, "cache_type": "f16"} | values
    return GgufInputs(architecture=catalog.models[model].architecture, **settings)  # type: ignore[arg-type]


# What llama.cpp (xllamacpp 2026.10.11549) logged for SmolLM2-135M, "KV buffer size"; benchmarks/planner_host.py.
@pytest.mark.parametrize(
    ("context", "cache_type", "mib"),
    [(8192, "f16", 180.0), (2048, "f16", 45.0), (4096, "q8_0", 47.81), (8192, "q8_0", 95.62), (8192, "q4_0", 50.62)],
)
def test_the_cache_is_what_llamacpp_logs(shapes: Catalog, context: int, cache_type: str, mib: float) -> None:
    inputs = _inputs(shapes, SMALL, context=context, cache_type=cache_type)
    assert cache_bytes(inputs, inputs.architecture.layers) / MIB == pytest.approx(mib, abs=0.006)


# The same log's "compute buffer size".
@pytest.mark.parametrize(
    ("batch", "context", "mib"), [(512, 8192, 22.64), (128, 8192, 5.66), (512, 2048, 16.64), (512, 4096, 18.67)]
)
def test_the_compute_buffer_is_what_llamacpp_logs(shapes: Catalog, batch: int, context: int, mib: float) -> None:
    found = host_compute_bytes(shapes.models[SMALL].architecture, batch, context) / MIB
    assert found == pytest.approx(mib, abs=0.06)


def test_every_request_has_its_own_cache_and_state(shapes: Catalog) -> None:
    one, three = (_inputs(shapes, "qwen3.8-27b", requests=n) for n in (1, 3))
    assert cache_bytes(three, 16) == 3 * cache_bytes(one, 16)
    assert state_bytes(three) == 3 * state_bytes(one)


def test_recurrent_state_of_the_hybrid_model(shapes: Catalog) -> None:
    # 48 layers of (10,240 channels x 3 inputs + 48 heads x 128 x 128) x 4 bytes
    assert state_bytes(_inputs(shapes, "qwen3.8-27b")) == 48 * (10240 * 3 + 48 * 128 * 128) * 4
    assert state_bytes(_inputs(shapes, SMALL)) == 0


@pytest.mark.parametrize("boot_id", ["3090x1-iq4xs", "3090x2-q8kxl"])
def test_published_boots_are_met_within_two_per_cent(shapes: Catalog, boot_id: str) -> None:
    boot = load_catalog().gguf_boots[boot_id]
    inputs = _inputs(
        shapes,
        "qwen3.8-27b",
        file_bytes=boot.weights_bytes,
        context=boot.context,
        cache_type=boot.cache_type,
        draft_layers=boot.draft_layers,
        projector_bytes=boot.projector_bytes,
        split=boot.split,
    )
    for terms, mib in zip(device_terms(shapes, inputs, boot.devices), boot.reported_mib, strict=True):
        assert sum(term.best_bytes for term in terms) / MIB == pytest.approx(mib, rel=0.02)
        low, high = sum(t.low_bytes for t in terms) / MIB, sum(t.high_bytes for t in terms) / MIB
        assert low < mib < high


def test_layers_lie_as_the_split_says(shapes: Catalog) -> None:
    def caches(split: tuple[float, ...]) -> list[int]:
        terms = device_terms(shapes, _inputs(shapes, "qwen3.8-27b", split=split), 2)
        return [next(t.best_bytes for t in device if t.name == "cache") for device in terms]

    even = caches(())
    assert even[0] == even[1]
    assert caches((0.75, 0.25))[0] == pytest.approx(3 * caches((0.75, 0.25))[1], rel=1e-6)
    assert caches((3.0, 1.0)) == caches((0.75, 0.25))


@pytest.mark.parametrize("split", [(1.0,), (0.0, 0.0), (-1.0, 2.0), (1.0, 1.0, 1.0)])
def test_a_split_that_cannot_be_is_even_or_cut(shapes: Catalog, split: tuple[float, ...]) -> None:
    for device in device_terms(shapes, _inputs(shapes, "qwen3.8-27b", split=split), 2):
        assert all(term.best_bytes >= 0 for term in device)


def test_a_projector_lies_on_the_first_gpu_and_the_drafter_on_the_last(shapes: Catalog) -> None:
    first, last = device_terms(
        shapes, _inputs(shapes, "qwen3.8-27b", projector_bytes=1000, draft_layers=1, file_bytes=15 * 10**9), 2
    )
    assert {"projector", "projector buffers"} <= {term.name for term in first}
    assert {"draft cache", "draft context", "logits"} <= {term.name for term in last}
    assert not {"projector", "draft cache", "logits"} & ({t.name for t in first} & {t.name for t in last})


def test_what_has_no_formula_is_said(shapes: Catalog) -> None:
    a = shapes.models[SMALL].architecture
    assert unknown_reason(a, "f16") is None
    assert "q3_k" in (unknown_reason(a, "q3_k") or "")
    assert "mamba9" in (unknown_reason(replace(a, family="mamba9"), "f16") or "")


def test_cache_types_are_blocks_of_ggml() -> None:
    assert CACHE_VALUE_BYTES["q8_0"] * 32 == 34
    assert CACHE_VALUE_BYTES["q4_0"] * 32 == 18


def test_a_term_that_was_never_measured_says_so(shapes: Catalog) -> None:
    term = measured(replace(shapes, gguf_terms={}), "host", "process")
    assert (term.best_bytes, term.basis) == (0, "not measured")
