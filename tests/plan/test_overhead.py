"""The fit of overheads: it finds a truth that is there, keeps to its prior elsewhere, and says how unsure it is."""

import random

from hypothesis import given
from hypothesis import strategies as st

from redline.catalog.memory import OverheadTerm
from redline.plan.overhead import Conditions, Observation, features, fit
from redline.units import GIB

TERMS: dict[str, OverheadTerm] = {
    name: OverheadTerm(
        id=name,
        title=name,
        when=when,
        prior_gib=prior,
        prior_sd_gib=sd,
        source="test",
        scales_with="batched_tokens" if name == "batch" else None,
    )
    for name, when, prior, sd in (
        ("base", {}, 1.0, 1.0),
        ("batch", {}, 0.5, 0.5),
        ("late", {"engine": ">=0.27"}, 0.0, 1.0),
        ("drafted", {"drafter": ("mtp", "dflash2")}, 0.0, 1.0),
        ("wide", {"tensor_parallel": ("4", "8")}, 0.0, 1.0),
        ("seen", {"vision": True}, 0.0, 1.0),
    )
}


def conditions(**values: object) -> Conditions:
    settings: dict[str, object] = {
        "engine": "0.20.0",
        "weights": "int4",
        "drafter": "none",
        "compute": "8.6",
        "tensor_parallel": 2,
        "batched_tokens": 8192,
        "vision": False,
        "graphs": True,
    } | values
    return Conditions(**settings)  # type: ignore[arg-type]


def truth(item: Conditions) -> float:
    return (
        1.2
        + 0.8 * item.batched_tokens / 8192
        + 0.3 * (item.engine >= "0.27")
        + 0.6 * (item.drafter != "none")
        - 0.2 * (item.tensor_parallel >= 4)
        + 0.4 * item.vision
    )


def observations(count: int, noise: float = 0.0) -> list[Observation]:
    rng = random.Random(7)
    rows = []
    for index in range(count):
        item = conditions(
            engine=rng.choice(["0.24.0", "0.33.0"]),
            drafter=rng.choice(["none", "mtp", "dflash2"]),
            tensor_parallel=rng.choice([2, 4]),
            batched_tokens=rng.choice([2048, 8192]),
            vision=rng.random() < 0.5,
        )
        rows.append(Observation(boot=f"b{index}", conditions=item, overhead_gib=truth(item) + rng.gauss(0, noise)))
    return rows


def test_a_known_truth_is_found() -> None:
    model = fit(TERMS, observations(200, noise=0.05))
    for item in (
        conditions(),
        conditions(engine="0.33.0", drafter="mtp", vision=True),
        conditions(batched_tokens=2048),
    ):
        assert abs(model.predict(item).best_bytes / GIB - truth(item)) < 0.05


def test_without_boots_the_prior_stands() -> None:
    found = fit(TERMS, []).predict(conditions())
    assert abs(found.best_bytes / GIB - 1.5) < 1e-6
    assert found.low_bytes < found.best_bytes < found.high_bytes


def test_more_boots_leave_less_doubt() -> None:
    widths = []
    for count in (0, 5, 50, 500):
        found = fit(TERMS, observations(count, noise=0.05)).predict(conditions(drafter="mtp"))
        widths.append(found.high_bytes - found.low_bytes)
    assert widths == sorted(widths, reverse=True)


def test_a_term_says_which_boots_it_rests_on() -> None:
    rows = observations(30)
    model = fit(TERMS, rows)
    drafted = {row.boot for row in rows if row.conditions.drafter != "none"}
    parts = {part.name: set(part.boots) for part in model.predict(conditions(drafter="mtp")).parts}
    assert parts["drafted"] == drafted
    assert "wide" not in parts


def test_a_batch_of_half_halves_its_term() -> None:
    full, half = (features(TERMS.values(), conditions(batched_tokens=n)) for n in (8192, 4096))
    assert (full[1], half[1]) == (1.0, 0.5)
    assert full[0] == half[0] == 1.0


@given(st.lists(st.floats(0.1, 5), min_size=1, max_size=30), st.integers(0, 2**32))
def test_a_prediction_lies_within_its_own_bounds(values: list[float], seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        Observation(boot=str(i), conditions=conditions(drafter=rng.choice(["none", "mtp"])), overhead_gib=value)
        for i, value in enumerate(values)
    ]
    found = fit(TERMS, rows).predict(conditions())
    assert 0 <= found.low_bytes <= max(0, found.best_bytes) <= found.high_bytes
