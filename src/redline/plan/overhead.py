"""Memory outside weights and cache, fitted from real boots, with its uncertainty.

A Bayesian linear model over the catalogue's `overheads`: each term has a prior, each boot moves it. The solution is
the ridge estimate (A + S^-1) c = b, and the variance of a prediction is noise^2 + f (A + S^-1)^-1 f. Knows bytes and
features; knows no allocator and no rig. Written without numpy, which a plan must not import.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from redline.catalog.memory import OverheadTerm
from redline.catalog.versions import in_versions
from redline.units import GIB

NOISE_GIB: Final = 0.10  # boots of one configuration on several days and versions differ by this much (boots.yaml)
REFERENCE_BATCHED_TOKENS: Final = 8192
DEVIATIONS: Final = 2.0  # low and high are best -+ two standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a term's `when` is compared with."""

    engine: str
    weights: str
    drafter: str
    compute: str
    tensor_parallel: int
    batched_tokens: int
    vision: bool
    graphs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one boot says: under these conditions, so many GiB a GPU were neither weights nor cache."""

    boot: str
    conditions: Conditions
    overhead_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadPart:
    """One term of a prediction, in bytes a GPU; `boots` are those it was fitted from."""

    name: str
    best_bytes: int
    boots: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadEstimate:
    """Overhead a GPU: best and bounds in bytes, and its parts."""

    best_bytes: int
    low_bytes: int
    high_bytes: int
    parts: tuple[OverheadPart, ...]


@dataclass(frozen=True, slots=True)
class OverheadModel:
    """A fit: value of each term in GiB, the covariance, and the boots behind each term."""

    terms: tuple[OverheadTerm, ...]
    values_gib: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    boots: tuple[tuple[str, ...], ...]

    def predict(self, conditions: Conditions) -> OverheadEstimate:
        """Return the overhead under these conditions."""
        row = features(self.terms, conditions)
        best = sum(value * x for value, x in zip(self.values_gib, row, strict=True))
        spread = sum(
            x * sum(c * y for c, y in zip(line, row, strict=True)) for x, line in zip(row, self.covariance, strict=True)
        )
        deviation = DEVIATIONS * (NOISE_GIB**2 + max(0.0, spread)) ** 0.5
        parts = tuple(
            OverheadPart(name=term.title, best_bytes=round(value * x * GIB), boots=boots)
            for term, value, x, boots in zip(self.terms, self.values_gib, row, self.boots, strict=True)
            if x
        )
        return OverheadEstimate(
            best_bytes=round(best * GIB),
            low_bytes=round(max(0.0, best - deviation) * GIB),
            high_bytes=round((best + deviation) * GIB),
            parts=parts,
        )


def fit(terms: Mapping[str, OverheadTerm], observations: Iterable[Observation]) -> OverheadModel:
    """Return the terms as the observations move them."""
    kept = tuple(terms.values())
    rows = [(features(kept, item.conditions), item) for item in observations]
    size = len(kept)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for index, term in enumerate(kept):
        weight = 1 / term.prior_sd_gib**2
        matrix[index][index] = weight
        right[index] = term.prior_gib * weight
    for row, item in rows:
        for i in range(size):
            if row[i]:
                right[i] += row[i] * item.overhead_gib / NOISE_GIB**2
                for j in range(size):
                    matrix[i][j] += row[i] * row[j] / NOISE_GIB**2
    inverse = _invert(matrix)
    values = tuple(sum(inverse[i][j] * right[j] for j in range(size)) for i in range(size))
    boots = tuple(tuple(item.boot for row, item in rows if row[i]) for i in range(size))
    return OverheadModel(kept, values, tuple(tuple(line) for line in inverse), boots)


def features(terms: Iterable[OverheadTerm], conditions: Conditions) -> tuple[float, ...]:
    """Return how much of each term applies: 0, 1, or a ratio for a term that scales."""
    scale = conditions.batched_tokens / REFERENCE_BATCHED_TOKENS
    return tuple(
        (scale if term.scales_with == "batched_tokens" else 1.0) if _applies(term, conditions) else 0.0
        for term in terms
    )


def _applies(term: OverheadTerm, conditions: Conditions) -> bool:
    for name, wanted in term.when.items():
        if name == "engine":
            if not in_versions(conditions.engine.removeprefix("v"), str(wanted)):
                return False
        elif isinstance(wanted, bool):
            if getattr(conditions, name) is not wanted:
                return False
        elif str(getattr(conditions, name)) not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            return False
    return True


def _invert(matrix: list[list[float]]) -> list[list[float]]:
    """Invert a symmetric positive definite matrix of a dozen rows by Gauss-Jordan elimination with pivoting."""
    size = len(matrix)
    work = [[*line, *(1.0 if i == j else 0.0 for j in range(size))] for i, line in enumerate(matrix)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(work[r][i]))
        work[i], work[pivot] = work[pivot], work[i]
        factor = work[i][i]
        work[i] = [value / factor for value in work[i]]
        for r in range(size):
            if r != i and work[r][i]:
                scale = work[r][i]
                work[r] = [value - scale * base for value, base in zip(work[r], work[i], strict=True)]
    return [line[size:] for line in work]
