"""Floors and comparisons of drafting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.checks.spec import added, counting, equal_greedy, floor_of
from redline.engine.counters import Acceptance
from redline.probe.exchange import Exchange


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


@given(st.text(max_size=20), st.text(max_size=20))
def test_greedy_answers_differ_where_they_first_differ(one: str, other: str) -> None:
    left, right = (Exchange(sent_ns=0, end_ns=1, content=text) for text in (one, other))
    at = equal_greedy(left, right)
    if one == other:
        assert at is None
    else:
        assert at is not None
        assert one[:at] == other[:at]
        assert one[at : at + 1] != other[at : at + 1]
