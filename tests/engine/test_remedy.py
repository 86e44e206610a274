"""Values that follow from others, and the sentence that fits them."""

from hypothesis import given
from hypothesis import strategies as st

from redline.engine.remedy import choose, derive, fill


@given(st.integers(1, 2**24), st.integers(16, 4096))
def test_the_context_that_fits_is_whole_blocks_and_no_longer(length: int, block: int) -> None:
    fits = int(derive({"max_len": str(length), "block_tokens": str(block)})["max_len_fit"])
    assert fits % block == 0
    assert length - block < fits <= length


@given(st.floats(0.1, 24.0), st.floats(24.0, 141.0))
def test_the_share_that_is_free_is_never_more_than_what_is_free(free: float, total: float) -> None:
    share = float(derive({"free_gib": str(free), "total_gib": str(total)})["gmu_free"])
    assert share * total <= free + 1e-9


def test_shares_go_up_and_down_within_bounds() -> None:
    assert derive({"gmu": "0.97"})["gmu_raised"] == "0.98"
    assert derive({"gmu": "0.9"})["gmu_lowered_more"] == "0.83"
    assert derive({"batched_tokens": "2048"})["batched_half"] == "2048"
    assert derive({"gmu": "auto"}) == {"gmu": "auto"}


def test_the_first_sentence_whose_values_are_known_is_taken() -> None:
    assert fill("SPEC_N={n}", {}) is None
    assert choose(("A={a}", "B={b}", "plain"), {"b": "2"}) == "B=2"
    assert choose(("A={a}", "plain"), {}) == "plain"
    assert choose(("A={a}",), {}) is None
