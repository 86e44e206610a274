import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.engine.counters import Acceptance, Counters, acceptance, counters_delta, parse_prometheus
from redline.engine.llamacpp import LlamaCpp

METRICS = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 120
# TYPE llamacpp:spec_decode_num_drafts_total counter
llamacpp:spec_decode_num_drafts_total 10
# TYPE llamacpp:spec_decode_num_draft_tokens_total counter
llamacpp:spec_decode_num_draft_tokens_total 70
# TYPE llamacpp:spec_decode_num_accepted_tokens_total counter
llamacpp:spec_decode_num_accepted_tokens_total 35
# TYPE llamacpp:spec_decode_num_accepted_tokens_per_pos_total counter
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 12
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 20
"""


def test_llamacpp_counters_are_read_by_name_and_position() -> None:
    counters = LlamaCpp().parse_counters(METRICS)
    assert (counters.prompt_tokens, counters.drafts, counters.accepted_tokens) == (120, 10, 35)
    assert list(counters.accepted_by_position or ()) == [20, 12]
    assert counters.cached_prompt_tokens is None


def test_label_series_are_added_up() -> None:
    text = '# TYPE a counter\na_total{model="x"} 3\na_total{model="y"} 4\n'
    assert parse_prometheus(text, {"a_total": "drafts"}).drafts == 7


def test_acceptance_counts_the_targets_own_token() -> None:
    delta = counters_delta(Counters(drafts=5, draft_tokens=30, accepted_tokens=10), LlamaCpp().parse_counters(METRICS))
    assert acceptance(delta) == Acceptance(drafts=5, draft_tokens=40, accepted_tokens=25)
    found = acceptance(delta)
    assert found is not None
    assert found.mean_length == 6.0
    assert found.rate == 0.625


def test_nothing_drafted_is_no_length_at_all() -> None:
    none = Acceptance(drafts=0, draft_tokens=0, accepted_tokens=0)
    assert (none.mean_length, none.rate) == (None, None)


def test_a_counter_that_went_down_means_a_restart() -> None:
    assert counters_delta(Counters(drafts=5), Counters(drafts=4)) is None


def test_an_absent_counter_is_not_zero() -> None:
    delta = counters_delta(Counters(drafts=1), Counters(drafts=2))
    assert delta is not None
    assert delta.accepted_tokens is None
    assert acceptance(delta) is None


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_deltas_are_differences(before: float, growth: float) -> None:
    delta = counters_delta(Counters(prompt_tokens=before), Counters(prompt_tokens=before + growth))
    assert delta is not None
    assert delta.prompt_tokens == pytest.approx(growth, abs=1e-3)
