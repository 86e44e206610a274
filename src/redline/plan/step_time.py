"""How long one step of decoding takes on vLLM, and what rate an accepted length makes of it. Memory moved, not guessed.

A step reads the weights, what drafts, the cache and the recurrent states once, over the memory rate; launches,
verified tokens and passes of a drafter come on top. The coefficients are data (`step_models`), fitted from measured
steps of one GPU; on another memory rate they are a projection and a plan says so. Knows no GPU and no process.
"""

from dataclasses import dataclass
from typing import Final

from redline.catalog.memory import StepModel
from redline.catalog.types import Architecture, Catalog, DrafterKind
from redline.plan.geometry import CacheKind
from redline.plan.inputs import VllmInputs, cache_layers

TABLE_BYTES: Final = 2  # embedding and head stay 16 bits wide in every export that is known here


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """What one step does on one GPU: bytes read, tokens verified, passes of the drafter, GPUs that join in."""

    weight_bytes: int
    draft_bytes: int
    cache_bytes: int
    tokens: int
    passes: int
    split: bool

    @property
    def read_bytes(self) -> int:
        """All bytes."""
        return self.weight_bytes + self.draft_bytes + self.cache_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeEstimate:
    """Tokens a second of one request, with the band of the model behind it; `model` is the id of that model."""

    low: float
    best: float
    high: float
    step_s: float
    model: str
    projected: bool


def step_work(inputs: VllmInputs, *, batch: int, context_tokens: int) -> StepWork:
    """Return what a step of `batch` requests does, each with `context_tokens` in the cache.

    Raises:
        UnknownPlanError: a cache type or a split that is not modelled.
    """
    a, tp, depth = inputs.architecture, inputs.tensor_parallel, inputs.drafter.depth
    cache = 0
    for layers in cache_layers(inputs):
        if layers.kind is CacheKind.STATE:
            cache += 2 * layers.layers * layers.state_bytes  # read and written
        else:
            held = min(context_tokens, layers.window or context_tokens)
            cache += layers.layers * layers.token_bytes * held
    return StepWork(
        weight_bytes=inputs.weights.on_card(tp) - (0 if a.tied_embeddings else _table(a) // tp),
        draft_bytes=_draft_bytes(inputs),
        cache_bytes=batch * cache,
        tokens=batch * (1 + depth),
        passes=_passes(inputs),
        split=tp > 1,
    )


def step_seconds(model: StepModel, work: StepWork, bytes_s: float) -> float:
    """Return the seconds of a step on a memory that copies `bytes_s`, by a model's coefficients."""
    return (
        model.fixed_ms
        + 1000 * work.read_bytes / (model.share * bytes_s)
        + model.token_us / 1000 * work.tokens
        + model.pass_ms * work.passes
        + (model.split_ms if work.split else 0.0)
    ) / 1000


def estimate_decode(
    catalog: Catalog, inputs: VllmInputs, hardware: str | None, *, accepted: float, batch: int = 1, context: int = 512
) -> DecodeEstimate | None:
    """Return the decode rate of one request, or None where no model covers this GPU, version or kind of weights."""
    record = catalog.hardware.get(hardware or "")
    for model in catalog.step_models.values():
        fits = record is not None and record.compute in model.compute and inputs.weight_format in model.weights
        fits = fits and inputs.architecture.family in model.families
        if not fits or record is None or inputs.engine_version.removeprefix("v") not in model.engine_versions:
            continue
        work = step_work(inputs, batch=batch, context_tokens=context)
        measured = record.id == model.hardware
        rate = model.copy_bytes_s * record.bandwidth_bytes_s / catalog.hardware[model.hardware].bandwidth_bytes_s
        seconds = step_seconds(model, work, rate)
        best = accepted / seconds
        return DecodeEstimate(
            low=best * (1 - model.band),
            best=best,
            high=best * (1 + model.band),
            step_s=seconds,
            model=model.id,
            projected=not measured,
        )
    return None


def step_note(catalog: Catalog, inputs: VllmInputs, hardware: str | None) -> tuple[str, ...]:
    """Return what a plan says about the time of a step; nothing where no measured model covers it."""
    found = estimate_decode(catalog, inputs, hardware, accepted=1.0)
    if found is None:
        return ()
    model = catalog.step_models[found.model]
    where = f"projected from {model.hardware} by memory rate" if found.projected else f"measured on {model.hardware}"
    a_token = ", times the tokens that drafting has accepted" if inputs.drafter.depth else ""
    rate = f"{found.low:.0f} to {found.high:.0f} tok/s for one request{a_token}"
    step = f"a step takes {1000 * found.step_s:.1f} ms (+-{model.band:.0%}), {rate}"
    return (f"{step}: {where}, CUDA graphs without torch.compile",)


def _table(architecture: Architecture) -> int:
    return architecture.vocab * architecture.hidden * TABLE_BYTES


def _draft_bytes(inputs: VllmInputs) -> int:
    """Bytes a drafter reads a step: its layers once a pass, and the target's head for every pass."""
    drafter, tp = inputs.drafter, inputs.tensor_parallel
    if not drafter.depth:
        return 0
    head = _table(inputs.architecture) // tp
    if drafter.kind is DrafterKind.MTP:
        return drafter.depth * (inputs.weights.mtp_on_card(tp) + head)
    # Of the selector's codebooks a step gathers a few rows only.
    return drafter.sharded_bytes // tp + head if drafter.layers else 0


def _passes(inputs: VllmInputs) -> int:
    if not inputs.drafter.depth:
        return 0
    return inputs.drafter.depth if inputs.drafter.kind is DrafterKind.MTP else 1
