"""Recorded boots as plan inputs: what they say about overhead, and what would be predicted for them.

Knows the catalogue's boots, hardware and formats; knows no rig at hand and no log format.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from redline.catalog.memory import Boot, Hardware
from redline.catalog.types import Catalog, DrafterKind
from redline.plan.cards import find_hardware
from redline.plan.geometry import (
    GeometryError,
    PoolGeometry,
    blocks_of_tokens,
    pool_blocks,
    pool_tokens,
    request_blocks,
)
from redline.plan.inputs import DrafterShape, UnknownPlanError, VllmInputs, geometry_of
from redline.plan.overhead import Conditions, Observation, OverheadModel, fit
from redline.plan.rules import rules_of
from redline.plan.weights import weights_of_files, weights_of_shape
from redline.units import GIB

LOG_ROUNDING_GIB: Final = 0.005  # vLLM logs GiB with two decimals (utils/mem_utils.py format_gib)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootCheck:
    """A boot against the allocator's rules.

    `blocks` follows from the logged tokens, `low_blocks` and `high_blocks` from the logged bytes and their rounding;
    each is None where the boot did not log it. `exact` is whether what it logged agrees, None where one is missing.
    """

    boot: Boot
    geometry: PoolGeometry
    need_blocks: int
    blocks: int | None
    low_blocks: int | None
    high_blocks: int | None

    @property
    def exact(self) -> bool | None:
        """Whether the tokens are an integer number of blocks, and one that the bytes allow."""
        if self.boot.pool_tokens is None or self.boot.approximate:
            return None
        if self.blocks is None:
            return False
        if self.low_blocks is None or self.high_blocks is None:
            return True
        return self.low_blocks <= self.blocks <= self.high_blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class BootPrediction:
    """A boot end to end: predicted from its settings alone, and measured. Bytes a GPU; tokens of the pool."""

    boot: Boot
    predicted_available_bytes: int
    measured_available_bytes: int
    predicted_tokens: int
    measured_tokens: int

    @property
    def error(self) -> float:
        """Relative error of the pool's tokens."""
        return self.predicted_tokens / self.measured_tokens - 1


def inputs_of_boot(catalog: Catalog, boot: Boot) -> VllmInputs:
    """Return a boot's settings as plan inputs.

    Raises:
        UnknownPlanError: its model or the format of its weights is not in the catalogue.
    """
    model = catalog.models.get(boot.model)
    if model is None:
        raise UnknownPlanError(f"the catalogue has no model {boot.model}")
    architecture = model.architecture
    if architecture.linear:
        architecture = replace(architecture, linear=replace(architecture.linear, state_dtype=boot.state_dtype))
    form = catalog.weight_formats.get(boot.weights)
    if boot.weights_bytes and form:
        weights = weights_of_files(architecture, boot.weights_bytes, form)
    else:
        weights = weights_of_shape(architecture, form.bytes_per_value if form else 2)
    draft = boot.draft
    return VllmInputs(
        name=boot.id,
        model=boot.model,
        architecture=architecture,
        context_max=model.context_max,
        engine_version=boot.engine_version,
        weights=weights,
        weight_format=boot.weights,
        tensor_parallel=boot.tensor_parallel,
        gpu_memory_utilization=boot.gpu_memory_utilization or 0.9,
        max_model_len=boot.max_model_len,
        max_num_seqs=boot.max_num_seqs,
        batched_tokens=boot.batched_tokens,
        kv_cache_dtype=boot.kv_cache_dtype,
        drafter=DrafterShape(
            kind=DrafterKind(boot.drafter),
            depth=boot.spec_n,
            layers=draft.layers if draft else 0,
            heads=draft.kv_heads if draft else 0,
            width=draft.head_dim if draft else 0,
            window=draft.window if draft else None,
            sharded_bytes=draft.file_bytes - draft.replicated_bytes if draft else 0,
            replicated_bytes=draft.replicated_bytes if draft else 0,
        ),
        gdn_prefill=boot.gdn_prefill,
        prefix_caching=boot.prefix_caching,
        block_size=boot.block_size,
        graphs=boot.graphs,
        vision=boot.vision,
    )


def conditions_of(inputs: VllmInputs, compute: str) -> Conditions:
    """Return what the overhead of these inputs depends on, on a GPU of this compute capability."""
    return Conditions(
        engine=inputs.engine_version,
        weights=inputs.weight_format,
        drafter=inputs.drafter.kind.value if inputs.drafter.depth else "none",
        compute=compute,
        tensor_parallel=inputs.tensor_parallel,
        batched_tokens=inputs.batched_tokens,
        vision=inputs.vision,
        graphs=inputs.graphs,
    )


def loaded_bytes(inputs: VllmInputs) -> int:
    """Return weights on one GPU: the target's, the built-in drafter's where it is used, an external drafter's."""
    mtp = inputs.drafter.kind is DrafterKind.MTP and inputs.drafter.depth > 0
    own = inputs.drafter.on_card(inputs.tensor_parallel) if inputs.drafter.depth else 0
    tp = inputs.tensor_parallel
    return inputs.weights.on_card(tp) + (inputs.weights.mtp_on_card(tp) if mtp else 0) + own


def check_boot(catalog: Catalog, boot: Boot) -> BootCheck:
    """Return what the allocator's rules make of what a boot logged.

    Raises:
        UnknownPlanError: its engine version or model is not known.
    """
    hardware = _hardware(catalog, boot)
    inputs = inputs_of_boot(catalog, boot)
    geometry = geometry_of(inputs, rules_of(catalog, inputs, hardware.compute)[0])
    exact_tokens = boot.pool_tokens if not boot.approximate else None
    low, high = _available_range(boot)
    return BootCheck(
        boot=boot,
        geometry=geometry,
        need_blocks=request_blocks(geometry, boot.max_model_len),
        blocks=blocks_of_tokens(geometry, exact_tokens, boot.max_model_len) if exact_tokens else None,
        low_blocks=None if low is None else pool_blocks(geometry, low),
        high_blocks=None if high is None else pool_blocks(geometry, high),
    )


def _available_range(boot: Boot) -> tuple[int | None, int | None]:
    """Return the least and the most bytes that a boot may have had for its cache, as exactly as it says."""
    if boot.available_bytes is not None:
        return boot.available_bytes, boot.available_bytes
    if boot.available_gib is None:
        return None, None
    low, high = (round((boot.available_gib + sign * LOG_ROUNDING_GIB) * GIB) for sign in (-1, 1))
    return low, high - 1


def measured_blocks(check: BootCheck) -> int | None:
    """Return the blocks a boot had, as well as its log says: from tokens, else from bytes, else from rounded tokens."""
    boot = check.boot
    if check.blocks is not None:
        return check.blocks
    if boot.pool_tokens and boot.approximate:
        return round(boot.pool_tokens * check.need_blocks / boot.max_model_len)
    if boot.available_gib is not None and boot.pool_tokens is None:
        return pool_blocks(check.geometry, round(boot.available_gib * GIB))
    return None


def observe(catalog: Catalog, boot: Boot) -> Observation | None:
    """Return what a boot says about overhead, or None where it does not say enough or is held out."""
    if boot.held_out or boot.gpu_memory_utilization is None or (boot.weights_bytes is None and boot.weights != "bf16"):
        return None
    if boot.model not in catalog.models:
        return None
    check = check_boot(catalog, boot)
    blocks = measured_blocks(check)
    if blocks is None:
        return None
    inputs, hardware = inputs_of_boot(catalog, boot), _hardware(catalog, boot)
    # Without logged bytes the blocks leave a remainder of at most one block; its middle is the best guess.
    low, high = _available_range(boot)
    available = (
        (low + high) // 2
        if low is not None and high is not None
        else round((blocks + 0.5) * check.geometry.pool_block_bytes)
    )
    requested = boot.gpu_memory_utilization * hardware.torch_visible_bytes
    return Observation(
        boot=boot.id,
        conditions=conditions_of(inputs, hardware.compute),
        overhead_gib=(requested - available - loaded_bytes(inputs)) / GIB,
    )


def calibrate(catalog: Catalog, *, without: Iterable[str] = ()) -> OverheadModel:
    """Return the overhead model fitted from the catalogue's boots, some left out."""
    return _calibrate(_Identity(catalog), frozenset(without))


def predict_boot(catalog: Catalog, boot: Boot, model: OverheadModel) -> BootPrediction | None:
    """Return what a model says about a boot from its settings alone, beside what was measured."""
    if observe(catalog, boot) is None:
        return None
    check = check_boot(catalog, boot)
    blocks = measured_blocks(check)
    assert blocks is not None
    assert boot.gpu_memory_utilization is not None
    inputs, hardware = inputs_of_boot(catalog, boot), _hardware(catalog, boot)
    estimate = model.predict(conditions_of(inputs, hardware.compute))
    requested = round(boot.gpu_memory_utilization * hardware.torch_visible_bytes)
    available = requested - loaded_bytes(inputs) - estimate.best_bytes
    return BootPrediction(
        boot=boot,
        predicted_available_bytes=available,
        measured_available_bytes=blocks * check.geometry.pool_block_bytes,
        predicted_tokens=pool_tokens(check.geometry, pool_blocks(check.geometry, available), boot.max_model_len),
        measured_tokens=pool_tokens(check.geometry, blocks, boot.max_model_len),
    )


def _hardware(catalog: Catalog, boot: Boot) -> Hardware:
    hardware = find_hardware(catalog, boot.hardware)
    if hardware is None:
        raise UnknownPlanError(f"the catalogue has no hardware {boot.hardware}")
    return hardware


class _Identity:
    """Makes a catalogue a cache key by being itself; catalogues are frozen and few."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __hash__(self) -> int:
        return id(self.catalog)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.catalog is self.catalog


@lru_cache(maxsize=64)
def _calibrate(key: _Identity, without: frozenset[str]) -> OverheadModel:
    catalog = key.catalog
    found = []
    for boot in catalog.boots.values():
        try:
            observation = observe(catalog, boot) if boot.id not in without else None
        except (UnknownPlanError, GeometryError) as error:
            raise UnknownPlanError(f"boot {boot.id} of the catalogue cannot be used: {error}") from error
        if observation is not None:
            found.append(observation)
    return fit(catalog.overheads, found)
