"""The names a user may set, their other spellings, and what each layer says for a field.

Knows names and their reading; which value a tier then has is settled by the rules.
"""

import difflib
from collections.abc import Collection, Iterable
from typing import Any, Final

from redline.catalog.fields import TIER_FIELDS, FieldSpec
from redline.errors import UsageError
from redline.settings import (
    FALSE_WORDS,
    SETTINGS_KNOBS,
    TRUE_WORDS,
    Layers,
    Sourced,
    parse_bool,
    parse_float,
    parse_int,
)

# SPEC=off is the older switch beside the depth. It wins over SPEC_N set in the same place.
SPEC_SWITCH: Final = "SPEC"
# Asked for by older guides; redline fetches a tier's companions without being told.
NEEDLESS: Final = ("WITH_DFLASH_DRAFT", "WITH_VISION")


def tier_knobs() -> frozenset[str]:
    """Return every name that changes a tier, other spellings included."""
    names = {name for spec in TIER_FIELDS.values() if spec.knob for name in (spec.knob, *spec.aliases)}
    return frozenset(names | {SPEC_SWITCH})


def known_names() -> frozenset[str]:
    """Return every name that redline reads, secrets included."""
    return tier_knobs() | {knob.name for knob in SETTINGS_KNOBS} | frozenset(NEEDLESS)


def read_override(spec: FieldSpec, layers: Layers) -> Sourced[Any] | None:
    """Return what the user set for a field, read and within its bounds, or None.

    Raises:
        UsageError: it cannot be read, is out of bounds, or is none of the words.
    """
    if spec.knob is None:
        return None
    raw = layers.get(spec.knob, *spec.aliases)
    if spec.knob == "SPEC_N":
        raw = _with_switch(raw, layers)
    if raw is None:
        return None
    name = raw.origin.rpartition(":")[2] if not raw.origin.startswith("cli:") else spec.knob
    if spec.type == "bool":
        return parse_bool(raw, name)
    if spec.type == "int":
        return parse_int(raw, name, minimum=int(spec.minimum), maximum=int(spec.maximum))
    if spec.type == "float":
        return parse_float(raw, name, minimum=spec.minimum, maximum=spec.maximum)
    if spec.choices and raw.value not in spec.choices:
        raise UsageError(
            f"{name}={raw.value!r} ({raw.origin}) is not usable: it must be one of {', '.join(spec.choices)}.",
            next_step=f"Correct {name}, or remove it to use the default.",
        )
    return raw


def _with_switch(depth: Sourced[str] | None, layers: Layers) -> Sourced[str] | None:
    switch = layers.get(SPEC_SWITCH)
    if switch is None:
        return depth
    word = switch.value.strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise UsageError(
            f"SPEC={switch.value!r} ({switch.origin}) is not usable: it must be on or off.",
            next_step="Set SPEC=off for no drafting, or SPEC_N to a depth.",
        )
    first = layers.get(SPEC_SWITCH, "SPEC_N", "MTP_DRAFT_N_MAX")
    if word in TRUE_WORDS or first is None or first.origin != switch.origin:
        return depth
    return Sourced("0", switch.origin)


def unknown_names(names: Iterable[str], known: Collection[str] | None = None) -> tuple[tuple[str, str | None], ...]:
    """Return the names that redline does not read, each with the nearest one that it does, or None."""
    names_known = known_names() if known is None else known
    found = []
    for name in sorted(set(names) - set(names_known)):
        near = difflib.get_close_matches(name.upper(), sorted(names_known), n=1, cutoff=0.6)
        found.append((name, near[0] if near else None))
    return tuple(found)


def dotenv_warnings(layers: Layers) -> tuple[str, ...]:
    """Return a sentence for each name in `.env` that redline does not read."""
    return tuple(
        f"{name} in .env is not a setting of redline, and was left alone."
        + (f" The nearest one is {near}." if near else "")
        for name, near in unknown_names(layers.dotenv)
    )


def split_engine_args(text: str | None) -> tuple[str, ...]:
    """Return arguments as a shell would split them; nothing is expanded and nothing is run.

    Raises:
        UsageError: a quotation is not closed.
    """
    if not text:
        return ()
    import shlex

    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(
            f"ENGINE_ARGS={text!r} is not usable: {str(error).lower()}.",
            next_step="Close the quotation, or write a backslash before it.",
        ) from None
