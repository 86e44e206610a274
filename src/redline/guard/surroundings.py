"""Guards about what the user set: sampler and thinking, efforts, names that nothing reads or that do not apply."""

from redline.catalog.fields import ABSENT, SAMPLER_FIELDS, TIER_FIELDS
from redline.catalog.knobs import dotenv_warnings
from redline.catalog.resolve import sampler_row
from redline.guard.context import GuardContext
from redline.guard.finding import Finding, Severity
from redline.guard.registry import guard


@guard("sampler-row")
def _sampler_row(context: GuardContext) -> Finding | None:
    thinking = context.tier.enable_thinking.value
    rows = context.model.samplers
    row = sampler_row(rows, thinking=thinking)
    other = next((item for item in rows if item.thinking != thinking), None)
    if row is None or other is None or row.thinking != thinking:
        return None
    mixed = []
    for name in SAMPLER_FIELDS:
        value = getattr(context.tier, name)
        given = not value.origin.startswith("sampler:")
        if given and value.value == getattr(other, name) != getattr(row, name):
            mixed.append(f"{TIER_FIELDS[name].knob}={value.value:g} ({value.origin})")
    if not mixed:
        return None
    mode = "on" if thinking else "off"
    return Finding(
        rule_id="sampler-row",
        severity=Severity.WARN,
        message=f"Thinking is {mode}, and {', '.join(mixed)} belong to the {other.id} row: the mixture is nobody's "
        "recommendation, and quality falls without a word.",
        remedy=f"Set ENABLE_THINKING={'false' if thinking else 'true'} as well, or leave these out: the {row.id} row "
        "then holds whole.",
        source=row.source,
    )


@guard("reasoning-effort")
def _reasoning_effort(context: GuardContext) -> Finding | None:
    effort, reasoning = context.tier.reasoning_effort, context.model.reasoning
    if reasoning is None or effort.value is None or effort.value in reasoning.efforts:
        return None
    return Finding(
        rule_id="reasoning-effort",
        severity=Severity.REFUSE,
        message=f"REASONING_EFFORT={effort.value} ({effort.origin}) is no effort of {context.model.title}: its "
        "template raises an error on it, and every request with thinking would end in HTTP 500.",
        remedy=f"Use {', '.join(reasoning.efforts)}.",
        source=reasoning.source,
    )


@guard("setting-unused")
def _setting_unused(context: GuardContext) -> Finding | None:
    unused = []
    for name, spec in TIER_FIELDS.items():
        value = getattr(context.tier, name)
        if spec.knob and value.origin.startswith(ABSENT):
            given = context.layers.get(spec.knob, *spec.aliases)
            if given is not None:
                unused.append(f"{spec.knob}={given.value} ({given.origin})")
    if not unused:
        return None
    engine = context.catalog.engines[context.tier.key.engine].title
    return Finding(
        rule_id="setting-unused",
        severity=Severity.WARN,
        message=f"{', '.join(unused)}: {engine} has no such thing, so it was left alone.",
        remedy="Remove it, or ignore this if another engine's tiers need it.",
        source=context.tier.engine_version.origin,
    )


@guard("setting-unknown")
def _setting_unknown(context: GuardContext) -> Finding | None:
    said = dotenv_warnings(context.layers)
    if not said:
        return None
    return Finding(
        rule_id="setting-unknown",
        severity=Severity.WARN,
        message=" ".join(said),
        remedy="Correct the name, or move it out of .env; redline reads that file literally and never runs it.",
        source=".env of this folder",
    )
