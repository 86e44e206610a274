"""A model's tiers as the grid they form: series down, depth across, one grid for each engine and topology."""

from dataclasses import dataclass

from redline.catalog.explain import evidence_of
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog, EvidenceKind, Model
from redline.errors import UsageError
from redline.ops.tiers import Speed, speed_of
from redline.settings import Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One tier of the grid. `context_projected` says that nobody has booted that context, as far as is known."""

    slug: str
    name: str
    context: int
    context_projected: bool
    status: str
    speed: Speed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """One series; cells by depth. Two tiers of one rank stand in one cell."""

    series: str
    weights: str
    cells: dict[str, tuple[Cell, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The tiers of one engine on one topology."""

    engine: str
    topology: str
    title: str
    depths: tuple[str, ...]
    rows: tuple[GridRow, ...]


def find_model(catalog: Catalog, name: str) -> Model:
    """Return the model of a name: its id, its spelling in slugs, or another name of it.

    Raises:
        UsageError: there is none of that name.
    """
    for model in catalog.models.values():
        if name.lower() in (model.id, model.slug, model.title.lower(), *model.aliases):
            return model
    known = ", ".join(catalog.models)
    raise UsageError(f"There is no model {name!r}.", next_step=f"Models: {known}.")


def map_model(catalog: Catalog, name: str) -> tuple[Grid, ...]:
    """Return a model's grids, engines and topologies in the catalogue's order.

    Raises:
        UsageError: there is no such model.
    """
    model = find_model(catalog, name)
    keys = [key for key in catalog.tiers.values() if key.model == model.id]
    places = dict.fromkeys((key.engine, key.topology) for key in keys)
    order = list(catalog.topologies)
    grids = []
    for engine, topology in sorted(places, key=lambda place: (place[0] != keys[0].engine, order.index(place[1]))):
        here = [key for key in keys if (key.engine, key.topology) == (engine, topology)]
        grids.append(
            Grid(
                engine=engine,
                topology=topology,
                title=f"{catalog.engines[engine].title} on {catalog.topologies[topology].title}",
                depths=tuple(dict.fromkeys(key.depth.value for key in here)),
                rows=tuple(
                    _row(catalog, series, [key.slug for key in here if key.series == series])
                    for series in dict.fromkeys(key.series for key in here)
                ),
            )
        )
    return tuple(grids)


def _row(catalog: Catalog, series: str, slugs: list[str]) -> GridRow:
    cells: dict[str, tuple[Cell, ...]] = {}
    weights = ""
    for slug in slugs:
        tier = resolve(catalog, slug, Layers())
        weights = weights or catalog.artifacts[tier.artifact.value].quant
        contexts = evidence_of(catalog, slug, "context")
        cell = Cell(
            slug=slug,
            name=tier.key.name,
            context=tier.max_model_len.value,
            context_projected=bool(contexts) and all(row.kind is EvidenceKind.PROJECTED for row in contexts),
            status=tier.status.value,
            speed=speed_of(catalog, slug),
        )
        depth = tier.key.depth.value
        cells[depth] = (*cells.get(depth, ()), cell)
    return GridRow(series=series, weights=weights, cells=cells)
