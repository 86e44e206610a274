"""Which planner a tier has. What is not modelled yet is UNKNOWN with its reason, never a guess."""

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.plan.llamacpp import plan_on_host
from redline.plan.types import FitPlan, Verdict
from redline.rig.types import Rig


def plan_tier(catalog: Catalog, tier: ResolvedTier, rig: Rig) -> FitPlan:
    """Return the plan of a tier on a rig."""
    if tier.key.engine == "llamacpp" and tier.key.topology == "cpu":
        return plan_on_host(catalog, tier, rig)
    return FitPlan(
        slug=tier.slug,
        verdict=Verdict.UNKNOWN,
        reasons=(f"the memory of {tier.key.engine} on GPUs is not modelled yet",),
        devices=(),
        context=tier.max_model_len.value,
        largest_context=None,
    )
