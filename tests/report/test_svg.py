"""The SVG writer: scales and ticks by property, and nothing that is text ever becomes markup."""

import math
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.report.svg import Canvas, fit, linear, log_ticks, logarithmic, number, standalone, text_width, ticks

reals = st.floats(-1e6, 1e6, allow_nan=False)
positive = st.floats(1e-3, 1e6, allow_nan=False)


@given(reals, st.floats(1e-3, 1e6), st.integers(1, 12))
def test_ticks_are_round_and_within(low: float, span: float, wanted: int) -> None:
    found = ticks(low, low + span, wanted)
    tolerance = 1e-6 * max(1.0, abs(low), span)
    assert all(low - tolerance <= value <= low + span + tolerance for value in found)
    assert len(found) <= 2 * wanted + 2
    steps = {round(b - a, 9) for a, b in pairwise(found)}
    for step in steps:
        lead = step / 10 ** math.floor(math.log10(step))
        assert round(lead, 3) in (1, 2, 5, 10)


def test_ticks_of_one_value() -> None:
    assert ticks(5, 5) == [5]
    assert ticks(0, math.inf) == [0]


@given(positive, st.floats(1.5, 1e4))
def test_log_ticks_are_within(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor, 6)
    assert all(low * 0.99 <= value <= low * factor * 1.01 for value in found)
    assert len(found) <= 7


@given(positive, st.floats(1.1, 1e3), st.floats(0, 1))
def test_scales_keep_order_and_ends(low: float, factor: float, share: float) -> None:
    high = low * factor
    for scale in (linear(low, high, 10, 300), logarithmic(low, high, 10, 300)):
        assert scale(low) == pytest.approx(10)
        assert scale(high) == pytest.approx(300)
        assert 10 - 1e-6 <= scale(low + share * (high - low)) <= 300 + 1e-6


def test_a_scale_without_span_is_its_middle() -> None:
    assert linear(3, 3, 0, 100)(3) == 50


@given(st.text(max_size=80), st.floats(10, 400))
def test_fitted_text_fits(words: str, width: float) -> None:
    assert text_width(fit(words, width)) <= max(width, text_width("x…"))


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (0.5, "0.5"), (40.0, "40"), (1500.0, "1,500"), (2.25, "2.25")]
)
def test_numbers_on_axes(value: float, shown: str) -> None:
    assert number(value) == shown


HOSTILE = """</text><script>alert(1)</script> " ' & <b>"""


def test_text_never_becomes_markup() -> None:
    canvas = Canvas(100, 50)
    canvas.text(1, 1, HOSTILE)
    canvas.dot(1, 1, 2, "c0", HOSTILE)
    canvas.rect(1, 1, 2, 2, '"><script>', HOSTILE)
    root = ET.fromstring(canvas.render(HOSTILE))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "text", "circle", "rect", "title"}
    assert root.attrib["aria-label"] == HOSTILE
    assert [element.text for element in root.iter() if element.tag.endswith("title")] == [HOSTILE, HOSTILE]


def test_a_standalone_drawing_brings_its_colours() -> None:
    canvas = Canvas(100, 50)
    canvas.line(0, 0, 1, 1, "stroke c0")
    text = standalone(canvas.render("x"))
    assert text.startswith("<?xml")
    root = ET.fromstring(text.partition("\n")[2])
    assert "prefers-color-scheme: dark" in (root[0].text or "")
