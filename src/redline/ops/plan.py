"""Planning from end to end: a slug, all tiers of a model, a checkpoint's config or a boot log, on a rig.

Knows where each comes from; the arithmetic is the plan room's, and nothing here is written to a terminal.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog, Evidence, TierKey
from redline.errors import UsageError
from redline.plan.adapter import DEFAULT_UTILIZATION
from redline.plan.cards import cards_of, describe_cards, rig_of_words
from redline.plan.dispatch import plan_inputs_in_full, plan_tier, plan_tier_in_full
from redline.plan.hf_config import Checkpoint, read_checkpoint
from redline.plan.inputs import UnknownPlanError, VllmInputs
from redline.plan.knobs import apply_sets
from redline.plan.notes import flash_attention_reads_fp8
from redline.plan.rigfile import read_rig
from redline.plan.types import FitPlan, Suggestion, Verdict
from redline.plan.vllm import unknown_plan
from redline.plan.weights import WeightBytes
from redline.rig.detect import detect_rig
from redline.rig.types import Rig
from redline.settings import Layers

PIN: Final = "0.33.0"  # the engine version planned for where the catalogue has no vLLM
MOST_OTHER_TIERS: Final = 3
SPEED_FIELDS: Final = ("artifact", "drafter", "spec_n", "kv_cache_dtype", "attention_backend", "tensor_parallel")
SPEED_METRICS: Final = ("decode_narrative", "decode_code")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSpeed:
    """Decode speed recorded for a slug, tok/s; a class that was not measured is None."""

    slug: str
    narrative_tok_s: float | None
    code_tok_s: float | None
    rig: str
    engine_version: str
    kind: str
    source: str

    def describe(self) -> str:
        """Return `128/231 tok/s, 2x RTX 3090, 0.27.1`: prose, then code."""
        values = [f"{value:.0f}" if value is not None else "-" for value in (self.narrative_tok_s, self.code_tok_s)]
        return f"{'/'.join(values)} tok/s, {self.rig.split(',')[0]}, {self.engine_version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """A plan with what belongs to it: the rig in words, the speed that is known."""

    fit: FitPlan
    rig: str
    speed: KnownSpeed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """All tiers of a model on one rig, in the catalogue's order."""

    model: str
    rig: str
    rows: tuple[PlanReport, ...]


def read_rig_option(catalog: Catalog, text: str | None) -> Rig:
    """Return the rig of `--rig`: this machine, words such as `2x3090`, or a file.

    Raises:
        UsageError: neither.
        AccessError: the file cannot be read.
    """
    if text is None:
        return detect_rig()
    path = Path(text)
    if path.suffix.lower() in (".yaml", ".yml", ".json") or path.is_file():
        return read_rig(catalog, path)
    return rig_of_words(catalog, text)


def plan_slug(catalog: Catalog, layers: Layers, slug: str, rig: Rig) -> PlanReport:
    """Return the full plan of one tier.

    Raises:
        UsageError: unknown slug, or a setting that cannot be used.
    """
    tier = resolve(catalog, slug, layers)
    cards = cards_of(catalog, rig)
    speeds = _trade_speeds(catalog, tier.key, cards[0].compute if cards else None)
    fit = plan_tier_in_full(catalog, tier, rig, speeds)
    if fit.verdict in (Verdict.NO, Verdict.UNKNOWN):
        fit = replace(fit, suggestions=(*fit.suggestions, *_other_tiers(catalog, layers, tier.key, rig)))
    return PlanReport(fit=fit, rig=describe_rig(catalog, rig), speed=_speed_as_set(catalog, tier, rig))


def plan_model(catalog: Catalog, layers: Layers, model: str, rig: Rig) -> ModelPlan:
    """Return every tier of a model on a rig, without suggestions.

    Raises:
        UsageError: no such model, or a setting that cannot be used.
    """
    found = next((m for m in catalog.models.values() if model in (m.id, m.slug, *m.aliases)), None)
    if found is None:
        known = ", ".join(catalog.models)
        raise UsageError(f"There is no model {model!r}.", next_step=f"Models: {known}.")
    keys = [key for key in catalog.tiers.values() if key.model == found.id]
    rows = []
    for key in keys:
        tier = resolve(catalog, key.slug, layers)
        fit = plan_tier(catalog, tier, rig)
        rows.append(PlanReport(fit=fit, rig="", speed=_speed_as_set(catalog, tier, rig)))
    return ModelPlan(model=found.id, rig=describe_rig(catalog, rig), rows=tuple(rows))


def plan_config(catalog: Catalog, path: Path, rig: Rig, sets: Iterable[str] = ()) -> PlanReport:
    """Return the full plan of a local config.json on vLLM.

    Raises:
        UsageError: a setting that cannot be used.
    """
    rig_words, cards = describe_rig(catalog, rig), cards_of(catalog, rig)
    try:
        inputs = apply_sets(inputs_of_checkpoint(catalog, read_checkpoint(path), len(cards)), sets)
    except UnknownPlanError as error:
        return PlanReport(fit=unknown_plan(_nothing_known(catalog, str(path)), str(error)), rig=rig_words)
    return PlanReport(fit=plan_inputs_in_full(catalog, inputs, cards), rig=rig_words)


def known_speed(catalog: Catalog, slug: str, rig: Rig | None = None) -> KnownSpeed | None:
    """Return the recorded decode speed of a slug: on GPUs of this rig's kind if there is one, else the first."""
    rows: dict[tuple[str, str, str], dict[str, Evidence]] = {}
    for row in catalog.evidence.values():
        if row.slug == slug and row.metric in SPEED_METRICS:
            rows.setdefault((row.rig, row.engine_version, row.source), {}).setdefault(row.metric, row)
    if not rows:
        return None
    names = {gpu.name.split()[-1].lower() for gpu in rig.gpus} if rig else set()
    near = [key for key in rows if any(name in key[0].lower() for name in names)]
    key = (near or list(rows))[0]
    narrative, code = (rows[key].get(metric) for metric in SPEED_METRICS)
    first = narrative or code
    assert first is not None
    return KnownSpeed(
        slug=slug,
        narrative_tok_s=narrative.value if narrative else None,
        code_tok_s=code.value if code else None,
        rig=first.rig,
        engine_version=first.engine_version,
        kind=first.kind.value,
        source=first.source,
    )


def _speed_as_set(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> KnownSpeed | None:
    """Return the recorded speed of a tier, unless the user changed something that it was measured with."""
    plain = resolve(catalog, tier.slug, Layers())
    same = all(getattr(plain, name).value == getattr(tier, name).value for name in SPEED_FIELDS)
    return known_speed(catalog, tier.slug, rig) if same else None


def inputs_of_checkpoint(catalog: Catalog, checkpoint: Checkpoint, gpus: int) -> VllmInputs:
    """Return a checkpoint as plan inputs, over as many of the GPUs as its heads allow."""
    heads = checkpoint.architecture.heads
    split = max((n for n in (1, 2, 4, 8) if n <= max(1, gpus) and heads % n == 0), default=1)
    same = next(
        (
            m.id
            for m in catalog.models.values()
            if m.architecture.layers == checkpoint.architecture.layers
            and m.architecture.hidden == checkpoint.architecture.hidden
            and m.architecture.vocab == checkpoint.architecture.vocab
        ),
        checkpoint.name,
    )
    return VllmInputs(
        name=checkpoint.name,
        model=same,
        architecture=checkpoint.architecture,
        context_max=checkpoint.context_max,
        engine_version=engine_pin(catalog),
        weights=checkpoint.weights,
        weight_format=checkpoint.weight_format,
        tensor_parallel=split,
        gpu_memory_utilization=DEFAULT_UTILIZATION,
        max_model_len=checkpoint.context_max,
        vision=checkpoint.vision,
    )


def describe_rig(catalog: Catalog, rig: Rig) -> str:
    """Return the rig in a few words, WSL included."""
    words = describe_cards(cards_of(catalog, rig)) if rig.gpus else rig.describe()
    return f"{words}, WSL2" if rig.wsl else words


def engine_pin(catalog: Catalog) -> str:
    """Return the version of vLLM that tiers use."""
    engine = catalog.engines.get("vllm")
    return engine.pin if engine else PIN


def _other_tiers(catalog: Catalog, layers: Layers, key: TierKey, rig: Rig) -> tuple[Suggestion, ...]:
    """Return the model's tiers that do fit, surest and fastest first, under the same settings of the user."""
    found: list[tuple[tuple[bool, float], Suggestion]] = []
    for other in catalog.tiers.values():
        if other.model != key.model or other.slug == key.slug:
            continue
        try:
            fit = plan_tier(catalog, resolve(catalog, other.slug, layers), rig)
        except UsageError:
            continue  # a setting of the user that this tier does not have
        if fit.verdict not in (Verdict.FIT, Verdict.TIGHT):
            continue
        speed = known_speed(catalog, other.slug, rig)
        cost = f"another tier, {fit.context:,} tokens, {speed.describe() if speed else 'speed not known'}"
        rank = (fit.verdict is not Verdict.FIT, -max(speed.narrative_tok_s or 0, speed.code_tok_s or 0) if speed else 0)
        item = Suggestion(
            change=other.slug,
            verdict=fit.verdict,
            cost=cost,
            context=fit.context,
            largest_context=fit.largest_context,
        )
        found.append((rank, item))
    found.sort(key=lambda pair: pair[0])
    return tuple(item for _, item in found[:MOST_OTHER_TIERS])


def _nothing_known(catalog: Catalog, name: str) -> VllmInputs:
    """Return inputs that only carry a name, for a plan that says what is not known."""
    model = next(iter(catalog.models.values()))
    return VllmInputs(
        name=name,
        model="",
        architecture=model.architecture,
        context_max=0,
        engine_version=engine_pin(catalog),
        weights=WeightBytes(sharded=0, replicated=0, mtp=0, basis=""),
        weight_format="",
        tensor_parallel=1,
        gpu_memory_utilization=DEFAULT_UTILIZATION,
        max_model_len=0,
    )


def _trade_speeds(catalog: Catalog, key: TierKey, compute: str | None) -> tuple[str | None, str | None]:
    """Return the known speed of the series' tiers with a 16-bit and with an 8-bit cache, where drafting is external."""
    if flash_attention_reads_fp8(compute):
        return None, None
    siblings = {key.depth.value: key.slug}
    for other in catalog.tiers.values():
        same = (other.engine, other.model, other.topology, other.series)
        if same == (key.engine, key.model, key.topology, key.series):
            siblings.setdefault(other.depth.value, other.slug)
    if key.depth.value not in ("super", "ultra"):
        return None, None
    wide, narrow = (known_speed(catalog, siblings[d]) if d in siblings else None for d in ("ultra", "super"))
    return wide.describe() if wide else None, narrow.describe() if narrow else None
