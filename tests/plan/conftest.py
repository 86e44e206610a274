"""What planning tests share: a catalogue with the model's shape, its inputs, and rigs by words."""

from collections.abc import Callable
from typing import Any

import pytest

from redline.catalog.load import load_catalog
from redline.catalog.types import Catalog, DrafterKind
from redline.plan.cards import Card, cards_of, rig_of_words
from redline.plan.inputs import DrafterShape, VllmInputs
from redline.plan.weights import weights_of_files

MODEL = "qwen3.8-27b"
GIB = 2**30
FILES = {"int4": round(18.23 * GIB), "fp8": round(28.75 * GIB), "nvfp4": round(20.44 * GIB)}
CODEBOOKS = 2 * 248320 * 256 * 2
NONE = DrafterShape()
MTP3 = DrafterShape(kind=DrafterKind.MTP, depth=3)
DFLASH7 = DrafterShape(
    kind=DrafterKind.DFLASH2,
    depth=7,
    layers=5,
    heads=8,
    width=128,
    window=2048,
    sharded_bytes=1_200_000_000 - CODEBOOKS,
    replicated_bytes=CODEBOOKS,
)
DRAFTERS = {"none": NONE, "mtp3": MTP3, "dflash7": DFLASH7}

MakeInputs = Callable[..., VllmInputs]
MakeCards = Callable[[str], tuple[Card, ...]]


@pytest.fixture(scope="session")
def shapes() -> Catalog:
    """The packaged catalogue."""
    return load_catalog()


@pytest.fixture(scope="session")
def make(shapes: Catalog) -> MakeInputs:
    """Return inputs of the 27B shape: `make("int4", "dflash7", tensor_parallel=2, ...)`."""

    def build(weights: str = "int4", drafter: str = "none", **values: Any) -> VllmInputs:
        model = shapes.models[MODEL]
        settings: dict[str, Any] = {
            "name": f"{weights}-{drafter}",
            "engine_version": "0.33.0",
            "tensor_parallel": 2,
            "gpu_memory_utilization": 0.9,
            "max_model_len": 204800,
            "kv_cache_dtype": "bfloat16",
            "vision": True,
        } | values
        return VllmInputs(
            model=model.id,
            architecture=model.architecture,
            context_max=model.context_max,
            weights=weights_of_files(model.architecture, FILES[weights], shapes.weight_formats[weights]),
            weight_format=weights,
            drafter=DRAFTERS[drafter],
            **settings,
        )

    return build


@pytest.fixture(scope="session")
def cards(shapes: Catalog) -> MakeCards:
    """Return the GPUs of a rig in words."""
    return lambda words: cards_of(shapes, rig_of_words(shapes, words))
