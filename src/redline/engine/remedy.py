"""Sentences with values in them: what follows from the values that a log or a plan states, and which sentence fits."""

import string
from collections.abc import Mapping, Sequence
from typing import Final

_BLOCK_TOKENS: Final = 16  # the smallest block of any engine; a context in whole blocks of it loses nothing
_MAX_GMU: Final = 0.98


def derive(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with those that follow from them. A value that cannot be worked out is not there.

    `max_len_fit`: the longest context that fits, in whole blocks. `gmu_...`: shares of GPU memory, raised by 0.02,
    lowered by 0.02 or 0.07, or what is free, rounded down. `batched_half`: half the batch, at least 2048 tokens.
    """
    found = dict(values)
    length, block = _number(values, "max_len"), _number(values, "block_tokens") or _BLOCK_TOKENS
    if length:
        found["max_len_fit"] = str(int(length // block * block))
    if gmu := _number(values, "gmu"):
        found["gmu_raised"] = f"{min(gmu + 0.02, _MAX_GMU):.2f}"
        found["gmu_lowered"] = f"{gmu - 0.02:.2f}"
        found["gmu_lowered_more"] = f"{gmu - 0.07:.2f}"
    free, total = _number(values, "free_gib"), _number(values, "total_gib")
    if free and total:
        found["gmu_free"] = f"{int(free / total * 100) / 100:.2f}"
    if batched := _number(values, "batched_tokens"):
        found["batched_half"] = str(max(2048, int(batched) // 2))
    return found


def fill(template: str, values: Mapping[str, str]) -> str | None:
    """Return the sentence with its values, or None when it names one that is not known."""
    names = {name for _, name, _, _ in string.Formatter().parse(template) if name}
    return template.format_map(dict(values)) if names <= set(values) else None


def choose(alternatives: Sequence[str], values: Mapping[str, str]) -> str | None:
    """Return the first sentence whose values are all known, or None."""
    return next((text for template in alternatives if (text := fill(template, values)) is not None), None)


def _number(values: Mapping[str, str], name: str) -> float | None:
    try:
        return float(values[name].replace(",", ""))
    except (KeyError, ValueError):
        return None
