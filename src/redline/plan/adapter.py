"""A resolved tier as plan inputs: the one place that knows both the catalogue's fields and the planner's.

A field that a tier leaves to the engine (None) takes the engine's own default here.
"""

import re
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.memory import WeightFormat
from redline.catalog.types import Artifact, Catalog, Drafter, DrafterKind
from redline.plan.cards import Card, cards_of
from redline.plan.inputs import DrafterShape, VllmInputs
from redline.plan.weights import WeightBytes, weights_of_files
from redline.rig.types import Rig

DEFAULT_UTILIZATION: Final = 0.9  # vLLM 0.33.0 config/cache.py says 0.92 since 0.30; every tier states its own
DEFAULT_BATCHED_TOKENS: Final = 8192
MAX_BLOCK_SIZE: Final = 2**16
CODEBOOKS: Final = 2  # a DFlash2 selector keeps one codebook for each end of an edge, whole on every GPU
CODEBOOK_VALUE_BYTES: Final = 2


def vllm_inputs(catalog: Catalog, tier: ResolvedTier) -> VllmInputs:
    """Return what a vLLM tier is planned from."""
    model = catalog.models[tier.key.model]
    artifact = catalog.artifacts[tier.artifact.value]
    drafter = catalog.drafters[tier.drafter.value]
    form = weight_format(catalog, artifact)
    parallel = tier.tensor_parallel.value or catalog.topologies[tier.key.topology].gpus or 1
    prefix_caching = tier.prefix_caching.value
    patch = next((item for item in catalog.patched_allocators.values() if tier.slug in item.slugs), None)
    return VllmInputs(
        name=tier.slug,
        model=model.id,
        architecture=model.architecture,
        context_max=model.context_max,
        engine_version=tier.engine_version.value,
        weights=_weights(catalog, tier, artifact, form),
        weight_format=form.id if form else artifact.quant,
        tensor_parallel=parallel,
        pipeline_parallel=tier.pipeline_parallel.value or 1,
        gpu_memory_utilization=tier.gpu_memory_utilization.value or DEFAULT_UTILIZATION,
        max_model_len=tier.max_model_len.value,
        max_num_seqs=tier.max_num_seqs.value,
        batched_tokens=tier.batch_tokens.value or DEFAULT_BATCHED_TOKENS,
        kv_cache_dtype=tier.kv_cache_dtype.value,
        drafter=drafter_shape(catalog, drafter, tier.spec_n.value),
        attention_backend=tier.attention_backend.value,
        gdn_prefill=tier.gdn_prefill_backend.value,
        prefix_caching=True if prefix_caching is None else prefix_caching,
        vision=model.capabilities.vision.offered,
        block_size=_block_size(tier.engine_args.value),
        patched_allocator=patch.title if patch else None,
    )


def tier_cards(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> tuple[Card, ...]:
    """Return the GPUs that a tier may take: those it names by number, else all of the rig."""
    cards = cards_of(catalog, rig)
    named = [word.strip() for word in (tier.gpu_ids.value or "").split(",") if word.strip()]
    if not named or not all(word.isdecimal() for word in named):
        return cards
    return tuple(cards[int(word)] for word in dict.fromkeys(named) if int(word) < len(cards))


def _block_size(arguments: str | None) -> int | None:
    """Return the --block-size among a tier's further engine arguments; None where there is none that can be read."""
    found = re.search(r"--block-size[= ](\d+)", arguments or "")
    return int(found[1]) if found and 0 < int(found[1]) <= MAX_BLOCK_SIZE else None


def weight_format(catalog: Catalog, artifact: Artifact) -> WeightFormat | None:
    """Return the record of an artifact's format, by the spelling of its `quant`; None when none is known."""
    said = _plain(artifact.quant)
    method = artifact.quantization
    words = {said, _plain(f"{method.method}{method.bits}") if method else said}
    for form in catalog.weight_formats.values():
        if words & {_plain(name) for name in (form.id, *form.quants)}:
            return form
    return next((form for form in catalog.weight_formats.values() if form.id in said), None)


def _weights(catalog: Catalog, tier: ResolvedTier, artifact: Artifact, form: WeightFormat | None) -> WeightBytes:
    size = artifact.size_bytes
    model = catalog.models[tier.key.model]
    if not size:
        return WeightBytes(sharded=0, replicated=0, mtp=0, basis="not declared")
    if form is None:
        basis = f"size of the files; how {artifact.quant} lies in memory is not known"
        return WeightBytes(sharded=size, replicated=0, mtp=0, basis=basis)
    return weights_of_files(model.architecture, size, form)


def drafter_shape(catalog: Catalog, drafter: Drafter, depth: int) -> DrafterShape:
    """Return what a drafter of the catalogue keeps in memory at a depth."""
    if drafter.kind is DrafterKind.MTP:
        return DrafterShape(kind=drafter.kind, depth=depth)
    checkpoint = drafter.checkpoint
    if checkpoint is None:
        return DrafterShape(kind=drafter.kind, depth=depth if drafter.kind is not DrafterKind.NONE else 0)
    artifact = catalog.artifacts.get(drafter.artifact) if drafter.artifact else None
    size = artifact.size_bytes if artifact else 0
    codebooks = CODEBOOKS * (checkpoint.vocab or 0) * (checkpoint.selector_rank or 0) * CODEBOOK_VALUE_BYTES
    replicated = min(codebooks, size)
    return DrafterShape(
        kind=drafter.kind,
        depth=depth,
        layers=checkpoint.layers or 0,
        heads=checkpoint.kv_heads or 0,
        width=checkpoint.head_dim or 0,
        window=checkpoint.window,
        sharded_bytes=size - replicated,
        replicated_bytes=replicated,
    )


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())
