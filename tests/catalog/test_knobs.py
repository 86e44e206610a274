"""Names a user may set."""

import pytest

from redline.catalog.fields import TIER_FIELDS
from redline.catalog.knobs import dotenv_warnings, split_engine_args, unknown_names
from redline.errors import UsageError
from redline.settings import Layers


def test_unknown_name_in_dotenv_is_told_with_the_nearest() -> None:
    said = dotenv_warnings(Layers(dotenv={"MAX_MODEL_LENGTH": "8192", "PORT": "1", "SPEC": "off", "WITH_VISION": "1"}))
    assert said == (
        "MAX_MODEL_LENGTH in .env is not a setting of redline, and was left alone. The nearest one is MAX_MODEL_LEN.",
    )


def test_unknown_name_without_a_near_one_gets_no_guess() -> None:
    assert unknown_names(["QQQQ"]) == (("QQQQ", None),)


def test_names_of_the_surroundings_are_not_judged() -> None:
    assert dotenv_warnings(Layers(environ={"NONSENSE": "1"}, config={"nonsense": "1"})) == ()


def test_no_name_is_read_for_two_fields() -> None:
    names = [name for spec in TIER_FIELDS.values() if spec.knob for name in (spec.knob, *spec.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ()),
        ("", ()),
        ("--no-async-scheduling", ("--no-async-scheduling",)),
        ("--x '{\"a\": 1}' $HOME", ("--x", '{"a": 1}', "$HOME")),
    ],
)
def test_engine_arguments_are_split_and_never_expanded(text: str | None, words: tuple[str, ...]) -> None:
    assert split_engine_args(text) == words


def test_open_quotation_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="ENGINE_ARGS"):
        split_engine_args("--x 'half")
