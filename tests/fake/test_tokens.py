"""The tokenizer: nothing is lost, and counting is what it says."""

from hypothesis import given
from hypothesis import strategies as st

from redline.fake import tokens


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokens.pieces(text)) == text
    assert tokens.count(text) == len(tokens.pieces(text))


@given(st.text(), st.text())
def test_a_space_ends_a_token_so_counts_add_up(first: str, second: str) -> None:
    joined = f"{first}\n{second}"
    assert tokens.count(joined) == tokens.count(first) + 1 + tokens.count(second)


def test_ids_come_back_as_text() -> None:
    tokenizer = tokens.Tokenizer()
    ids = tokenizer.encode("The harbour clerk remembers.")
    assert len(ids) == tokens.count("The harbour clerk remembers.")
    assert tokenizer.decode(ids) == "The harbour clerk remembers."
    assert tokens.Tokenizer().encode("The harbour clerk remembers.") == ids


def test_known_counts() -> None:
    assert tokens.pieces("The capital  of\nFrance") == ["The", " capi", "tal", " ", " of", "\n", "Fran", "ce"]
