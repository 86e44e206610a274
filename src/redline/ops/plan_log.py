"""Back-solving a boot log: which model it was, what it implies, how far off its prediction was.

Knows how a log names a model and a drafter; the arithmetic is the plan room's.
"""

from collections.abc import Mapping
from pathlib import Path

from redline.catalog.resolve import find_tier, resolve
from redline.catalog.types import Artifact, Catalog, DrafterKind
from redline.engine.vllm_boot import parse_boot_log
from redline.errors import AccessError, UsageError
from redline.ops.plan import engine_pin, inputs_of_checkpoint
from redline.plan.adapter import DEFAULT_UTILIZATION, drafter_shape, vllm_inputs, weight_format
from redline.plan.back_solve import BackSolved, back_solve, card_of_facts, inputs_of_facts
from redline.plan.cards import cards_of
from redline.plan.hf_config import read_checkpoint
from redline.plan.inputs import DrafterShape, UnknownPlanError, VllmInputs
from redline.plan.types import BootFacts
from redline.plan.weights import WeightBytes, weights_of_files
from redline.rig.types import Rig
from redline.settings import Layers


def plan_log(
    catalog: Catalog,
    layers: Layers,
    log: Path,
    *,
    slug: str | None = None,
    config: Path | None = None,
    rig: Rig | None = None,
) -> BackSolved:
    """Return what a boot log implies, beside what would have been predicted.

    Raises:
        AccessError: the log cannot be read.
        UsageError: unknown slug, or nothing says which model it was.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise AccessError(
            f"{log} cannot be read: {error.strerror}.", next_step="Give the path of a boot log."
        ) from None
    facts = parse_boot_log(text)
    inputs = _inputs_of_log(catalog, layers, facts, slug, config)
    card = card_of_facts(catalog, facts) or (next(iter(cards_of(catalog, rig)), None) if rig else None)
    return back_solve(catalog, facts, inputs_of_facts(inputs, facts), card)


def _inputs_of_log(
    catalog: Catalog, layers: Layers, facts: BootFacts, slug: str | None, config: Path | None
) -> VllmInputs:
    if slug:
        return _with_drafter(
            catalog, vllm_inputs(catalog, resolve(catalog, find_tier(catalog, slug).slug, layers)), facts
        )
    if config:
        try:
            checkpoint = read_checkpoint(config)
        except UnknownPlanError as error:
            raise UsageError(
                f"--hf {config}: {error}.", next_step="Give the config.json of the model served."
            ) from None
        inputs = inputs_of_checkpoint(catalog, checkpoint, facts.tensor_parallel or 1)
        return _with_drafter(catalog, inputs, facts)
    artifact = _artifact_of(catalog, facts)
    if artifact is None:
        raise UsageError(
            f"The log's model {facts.model or '(none named)'!r} is not in the catalogue.",
            next_step="Name the tier it was (`redline plan SLUG --from-log FILE`), or its config: --hf CONFIG_JSON.",
        )
    model, form = catalog.models[artifact.model], weight_format(catalog, artifact)
    size = artifact.size_bytes
    inputs = VllmInputs(
        name=artifact.id,
        model=model.id,
        architecture=model.architecture,
        context_max=model.context_max,
        engine_version=facts.engine_version or engine_pin(catalog),
        weights=weights_of_files(model.architecture, size, form)
        if form
        else WeightBytes(sharded=size, replicated=0, mtp=0, basis="size of the files"),
        weight_format=form.id if form else artifact.quant,
        tensor_parallel=facts.tensor_parallel or 1,
        gpu_memory_utilization=facts.gpu_memory_utilization or DEFAULT_UTILIZATION,
        max_model_len=facts.context or model.context_max,
        vision=model.capabilities.vision.offered,
    )
    return _with_drafter(catalog, inputs, facts)


def _artifact_of(catalog: Catalog, facts: BootFacts) -> Artifact | None:
    """Return the artifact whose folder or repository the log names; the longest match counts."""
    name = (facts.model or "").rstrip("/").lower()
    best: tuple[int, Artifact] | None = None
    for artifact in catalog.artifacts.values():
        if artifact.format != "safetensors":
            continue
        repo = getattr(artifact.origin, "repo", "")
        places: Mapping[str, None] = dict.fromkeys((artifact.id, artifact.place, repo))
        for place in places:
            if place and name.endswith(place.lower()) and (best is None or len(place) > best[0]):
                best = (len(place), artifact)
    return best[1] if best else None


def _with_drafter(catalog: Catalog, inputs: VllmInputs, facts: BootFacts) -> VllmInputs:
    """Return inputs with the drafter that the log names, in the shape the catalogue or a recorded boot gives it."""
    method, depth = facts.speculative_method, facts.speculative_tokens or 0
    if not method or not depth:
        return inputs.changed(drafter=DrafterShape()) if facts.model else inputs
    if method == "mtp":
        return inputs.changed(drafter=DrafterShape(kind=DrafterKind.MTP, depth=depth))
    if method != "dflash" or inputs.drafter.kind is DrafterKind.DFLASH2:
        return inputs
    for drafter in catalog.drafters.values():
        shape = drafter_shape(catalog, drafter, depth)
        if shape.kind is DrafterKind.DFLASH2 and shape.layers:
            return inputs.changed(drafter=shape)
    draft = next((boot.draft for boot in catalog.boots.values() if boot.draft and boot.model == inputs.model), None)
    if draft is None:
        return inputs
    return inputs.changed(
        drafter=DrafterShape(
            kind=DrafterKind.DFLASH2,
            depth=depth,
            layers=draft.layers,
            heads=draft.kv_heads,
            width=draft.head_dim,
            window=draft.window,
            sharded_bytes=draft.file_bytes - draft.replicated_bytes,
            replicated_bytes=draft.replicated_bytes,
        )
    )
