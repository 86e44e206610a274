"""Where two greedy answers part, and whether rounding explains it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.checks.check import CheckStatus
from redline.checks.equality import Difference, GreedyEquality, first_difference


@given(st.text(max_size=20), st.text(max_size=20))
def test_answers_part_where_they_first_differ(drafted: str, plain: str) -> None:
    found = first_difference(drafted, plain, [])
    if drafted == plain:
        assert found is None
        return
    assert found is not None
    assert found.gap_nats is None
    assert drafted[: found.at] == plain[: found.at]
    assert drafted[found.at : found.at + 1] != plain[found.at : found.at + 1]


def _tokens(*rows: tuple[str, float, dict[str, float]]) -> list[dict[str, Any]]:
    return [
        {
            "token": text,
            "logprob": chance,
            "top_logprobs": [{"token": text, "logprob": chance}]
            + [{"token": other, "logprob": value} for other, value in others.items()],
        }
        for text, chance, others in rows
    ]


def test_the_gap_is_that_of_the_token_where_they_part() -> None:
    tokens = _tokens(("The", -0.1, {"A": -2.4}), (" red", -0.70, {" ready": -3.0, " rosy": -0.75}), (" cat", -0.1, {}))
    near = first_difference("The rosy cat", "The red cat", tokens)
    far = first_difference("The ready cat", "The red cat", tokens)
    unlisted = first_difference("The blue cat", "The red cat", tokens)
    assert near is not None
    assert far is not None
    assert unlisted is not None
    assert (near.at, far.at) == (5, 6)
    assert near.gap_nats == pytest.approx(0.05)
    assert near.tie
    assert far.gap_nats == pytest.approx(2.3)
    assert not far.tie
    assert unlisted.gap_nats is None


def _item(gap: float | None) -> Difference:
    return Difference(at=3, drafted="a", plain="b", gap_nats=gap)


@pytest.mark.parametrize(
    ("gaps", "status"),
    [
        ([], CheckStatus.PASS),
        ([0.01], CheckStatus.WARN),
        ([0.01, 2.0], CheckStatus.FAIL),
        ([None], CheckStatus.INCONCLUSIVE),
        ([None, None], CheckStatus.FAIL),
    ],
)
def test_ties_are_no_fault_and_most_answers_changed_are(gaps: list[float | None], status: CheckStatus) -> None:
    found = {str(number): _item(gap) for number, gap in enumerate(gaps)}
    result = GreedyEquality()._verdict(3, found)
    assert result.status is status
    assert result.metrics["same"] == 3 - len(gaps)
