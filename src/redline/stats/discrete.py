"""Are two samples of words, tokens or answers drawn alike? Pearson's chi-square, with rare outcomes pooled.

Meant for sampling: short continuations with and without a drafter must come from one distribution.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from redline.stats.distribution import chi_square_sf

MIN_EXPECTED: Final = 5.0

Outcome = TypeVar("Outcome", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquare:
    """The statistic over `categories` left after pooling, and its p-value, None where only one category is left.

    `distance` is the total variation between the two distributions as seen, pooling aside: 0 alike, 1 disjoint.
    Unlike the p-value it does not grow with the sample, but chance alone keeps it above 0.
    """

    statistic: float
    degrees: int
    p_value: float | None
    categories: int
    pooled: int
    distance: float


def fits(counts: Mapping[Outcome, int], shares: Mapping[Outcome, float]) -> ChiSquare:
    """Return the test of counts against known shares (K. Pearson, Phil. Mag. 50, 1900).

    Raises:
        ValueError: shares that do not add up to 1, an outcome without a share, or nothing counted.
    """
    total = sum(counts.values())
    if total <= 0 or not math.isclose(sum(shares.values()), 1, rel_tol=1e-6) or min(shares.values()) < 0:
        raise ValueError("a fit needs counts, and shares of 0 or more that add up to 1")
    if strange := [key for key, count in counts.items() if count and not shares.get(key)]:
        raise ValueError(f"{strange[0]!r} came up and has no share: no test is needed to tell these apart")
    rows = [(float(counts.get(key, 0)), total * share) for key, share in shares.items()]
    cells, pooled = _pool([((seen,), (expected,)) for seen, expected in rows])
    distance = sum(abs(seen - expected) for seen, expected in rows) / (2 * total)
    return _result(cells, pooled, distance)


def alike(counts_a: Mapping[Outcome, int], counts_b: Mapping[Outcome, int]) -> ChiSquare:
    """Return the test of two samples being drawn from one distribution; sizes may differ.

    Outcomes expected fewer than five times in a sample are pooled into one (W. G. Cochran, Biometrics 10, 1954).

    Raises:
        ValueError: an empty sample.
    """
    total_a, total_b = sum(counts_a.values()), sum(counts_b.values())
    if total_a <= 0 or total_b <= 0:
        raise ValueError("two samples are needed to compare them")
    share = total_a / (total_a + total_b)
    rows = []
    for key in sorted({*counts_a, *counts_b}, key=repr):
        seen_a, seen_b = counts_a.get(key, 0), counts_b.get(key, 0)
        both = seen_a + seen_b
        rows.append(((float(seen_a), float(seen_b)), (both * share, both * (1 - share))))
    distance = sum(abs(seen[0] / total_a - seen[1] / total_b) for seen, _ in rows) / 2
    cells, pooled = _pool(rows)
    return _result(cells, pooled, distance)


_Cell = tuple[tuple[float, ...], tuple[float, ...]]


def _pool(cells: Sequence[_Cell]) -> tuple[list[_Cell], int]:
    """Merge outcomes that are expected too rarely, and the next rarest with them until the rest is expected enough."""
    ordered = sorted(cells, key=lambda cell: min(cell[1]))
    rare = [cell for cell in ordered if min(cell[1]) < MIN_EXPECTED]
    kept = ordered[len(rare) :]
    while rare and kept and min(sum(cell[1][side] for cell in rare) for side in range(len(rare[0][1]))) < MIN_EXPECTED:
        rare.append(kept.pop(0))
    if not rare:
        return kept, 0
    sides = range(len(rare[0][0]))
    merged = tuple(tuple(sum(cell[part][side] for cell in rare) for side in sides) for part in (0, 1))
    return [*kept, (merged[0], merged[1])], len(rare)


def _result(cells: list[_Cell], pooled: int, distance: float) -> ChiSquare:
    statistic = sum(
        (seen - expected) ** 2 / expected for row in cells for seen, expected in zip(*row, strict=True) if expected > 0
    )
    degrees = len(cells) - 1
    return ChiSquare(
        statistic=statistic,
        degrees=degrees,
        p_value=chi_square_sf(statistic, degrees) if degrees else None,
        categories=len(cells),
        pooled=pooled,
        distance=distance,
    )
