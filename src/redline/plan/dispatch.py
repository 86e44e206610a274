"""Any tier on any rig: the plan with its trade and suggestions. Knows which engine has which planner."""

from dataclasses import replace

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.plan.adapter import tier_cards, vllm_inputs
from redline.plan.cards import Card
from redline.plan.inputs import VllmInputs
from redline.plan.llamacpp import plan_gguf
from redline.plan.suggest import missing_cards, suggest
from redline.plan.trade import trade_sentence
from redline.plan.types import FitPlan, Verdict
from redline.plan.vllm import plan_vllm
from redline.rig.types import Rig

Speeds = tuple[str | None, str | None]


def plan_tier(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> FitPlan:
    """Return the plan of a tier, without suggestions. Never raises: what is not known is a verdict."""
    engine = tier.key.engine
    if engine == "llamacpp":
        return plan_gguf(catalog, tier, rig)
    if engine == "vllm":
        return plan_vllm(catalog, vllm_inputs(catalog, tier), tier_cards(catalog, tier, rig))
    return FitPlan(
        slug=tier.slug,
        verdict=Verdict.UNKNOWN,
        reasons=(f"no planner for the engine {engine}",),
        devices=(),
        context=tier.max_model_len.value,
        largest_context=None,
    )


def plan_tier_in_full(catalog: Catalog, tier: ResolvedTier, rig: Rig, speeds: Speeds = (None, None)) -> FitPlan:
    """Return the plan of a tier with its trade and suggestions."""
    if tier.key.engine != "vllm":
        return plan_tier(catalog, tier, rig)
    return plan_inputs_in_full(catalog, vllm_inputs(catalog, tier), tier_cards(catalog, tier, rig), speeds)


def plan_inputs_in_full(
    catalog: Catalog, inputs: VllmInputs, cards: tuple[Card, ...], speeds: Speeds = (None, None)
) -> FitPlan:
    """Return the plan of a vLLM configuration with its trade and suggestions."""

    def again(other: VllmInputs) -> FitPlan:
        return plan_vllm(catalog, other, cards)

    plan = again(inputs)
    compute = cards[0].compute if cards else None
    more = missing_cards(plan, inputs, cards, lambda other, rig: plan_vllm(catalog, other, rig))
    return replace(
        plan,
        trade=trade_sentence(plan, inputs, compute, again, speeds),
        suggestions=(*suggest(plan, inputs, cards, again), *more),
    )
