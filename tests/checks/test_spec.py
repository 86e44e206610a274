"""Floors and comparisons of drafting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.checks.spec import added, copying, counting, floor_of
from redline.engine.counters import Acceptance


@pytest.mark.parametrize(
    ("method", "depth", "floor"),
    [
        ("mtp", 1, 1.3),
        ("mtp", 3, 2.0),
        ("mtp", 9, 2.0),
        ("lookup-map-k", 6, 1.05),
        ("", 0, 1.05),
        ("unheard-of", 4, 1.05),
    ],
)
def test_the_floor_follows_method_and_depth(method: str, depth: int, floor: float) -> None:
    assert floor_of(method, depth) == floor


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), min_size=1, max_size=6))
def test_stretches_add_up(parts: list[tuple[int, int]]) -> None:
    whole = added([Acceptance(drafts=n, draft_tokens=3 * n, accepted_tokens=min(m, 3 * n)) for n, m in parts])
    assert whole.drafts == sum(n for n, _ in parts)
    assert whole.mean_length is not None
    assert 1 <= whole.mean_length <= 4


def test_counting_is_another_request_for_another_seed() -> None:
    assert len({counting(seed, 30) for seed in range(90)}) == 90


def test_every_copied_text_is_another_one_for_every_turn_and_seed() -> None:
    assert len({copying(seed, turn) for seed in range(20) for turn in range(8)}) == 160
