"""Which points of a search are worth having: rates by prompt, context, memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.bench.quick import BenchSample
from redline.bench.tune import Measured, TuneBoot, TunePlan, TunePoint, summarise_tune
from redline.units import MIB
from redline.workload.prompts import PromptClass


def _point(number: int, context: int = 4096, refused: str = "") -> TunePoint:
    return TunePoint(
        number=number, settings={"SPEC_N": str(number)}, refused=refused, context_tokens=context, planned_bytes=MIB
    )


def _sample(boot: str, prompt: int, rate: float) -> BenchSample:
    return BenchSample(
        regime="tune-1", prompt_class=PromptClass.EDIT, prompt_index=prompt, completion_tokens=64, prompt_tokens=9,
        decode_tok_s=rate, prefill_tok_s=None, ttft_s=None, drafts=None, draft_tokens=None, accepted_tokens=None,
        error=None, boot_id=boot,
    )  # fmt: skip


def _measured(rates: dict[int, list[float]], memory: dict[int, int] | None = None) -> Measured:
    found = Measured()
    for number, values in rates.items():
        held = (memory or {}).get(number, 400) * MIB
        found.boots.append(TuneBoot(point=number, boot=0, boot_id=f"b{number}", memory_bytes=held))
        found.samples += [_sample(f"b{number}", prompt, rate) for prompt, rate in enumerate(values)]
    return found


def test_a_point_that_is_slower_in_every_prompt_is_lost_and_one_with_more_context_is_not() -> None:
    points = [_point(1), _point(2), _point(3, context=8192), _point(4, refused="does not fit"), _point(5)]
    measured = _measured({1: [40, 80, 60], 2: [20, 41, 30], 3: [19, 40, 31]})
    rows = {row.point.number: row for row in summarise_tune(points, measured).rows}
    assert [rows[number].worth_having for number in range(1, 6)] == [True, False, True, False, False]
    assert rows[2].why == "point 1 is faster"
    assert rows[4].why == "does not fit"
    assert rows[4].decode_tok_s is None
    assert rows[5].why == "not reached"
    assert rows[2].ratio is not None
    assert rows[2].ratio.mean == pytest.approx(0.5, rel=0.02)


def test_what_cannot_be_told_apart_is_kept() -> None:
    points = [_point(1), _point(2)]
    noisy = _measured({1: [40, 80, 60], 2: [50, 60, 70]})
    assert all(row.worth_having for row in summarise_tune(points, noisy).rows)
    alike = _measured({1: [40, 80, 60], 2: [40.1, 80.1, 60.2]}, {1: 400, 2: 300})
    first, second = summarise_tune(points, alike).rows
    assert (first.worth_having, second.worth_having) == (False, True)
    assert first.why == "point 2 is smaller"


_RATES = st.lists(st.floats(1, 500), min_size=3, max_size=3)


@given(st.lists(st.tuples(_RATES, st.sampled_from([2048, 4096]), st.integers(200, 900)), min_size=1, max_size=6))
def test_something_is_always_worth_having(rows: list[tuple[list[float], int, int]]) -> None:
    points = [_point(number, context) for number, (_, context, _) in enumerate(rows, start=1)]
    rates = {number: values for number, (values, _, _) in enumerate(rows, start=1)}
    memory = {number: held for number, (_, _, held) in enumerate(rows, start=1)}
    summary = summarise_tune(points, _measured(rates, memory))
    kept = [row for row in summary.rows if row.worth_having]
    assert kept
    assert all(row.why for row in summary.rows if not row.worth_having)


def test_every_combination_is_a_point() -> None:
    plan = TunePlan(slug="x", vary={"SPEC_N": ("0", "7"), "KV_CACHE_DTYPE": ("f16",)}, classes=(PromptClass.EDIT,))
    assert plan.points() == ({"SPEC_N": "0", "KV_CACHE_DTYPE": "f16"}, {"SPEC_N": "7", "KV_CACHE_DTYPE": "f16"})
