"""Plans as pictures: cells that add up, SVG that is XML, names that cannot break out of it."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from redline.plan.picture import BAR_CELLS, bars, segments, svg
from redline.plan.types import DevicePlan, FitPlan, Term, Verdict
from redline.units import GIB


def _term(name: str, gib: float) -> Term:
    size = round(gib * GIB)
    return Term(name=name, best_bytes=size, low_bytes=size, high_bytes=size, basis="made up")


CARD = DevicePlan(
    device="NVIDIA GeForce RTX 3090",
    total_bytes=24 * GIB,
    available_bytes=22 * GIB,
    free_bytes=23 * GIB,
    spare_bytes=1 * GIB,
    terms=(_term("weights", 9), _term("drafter", 1), _term("overhead", 2), _term("cache", 8)),
)
HOST = DevicePlan(
    device="host",
    total_bytes=16 * GIB,
    available_bytes=10 * GIB,
    terms=(_term("weights", 1), _term("kv cache", 2), _term("process", 0.5)),
)
PLAN = FitPlan(
    slug="vllm/example", verdict=Verdict.FIT, reasons=(), devices=(CARD, CARD), context=65536, largest_context=70000
)


def test_text_bars(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(bars(PLAN)) == snapshot


def test_text_bars_in_letters(snapshot: SnapshotAssertion) -> None:
    lines = bars(replace(PLAN, devices=(HOST,)), plain=True)
    assert all(line.isascii() for line in lines)
    assert "\n".join(lines) == snapshot


def test_svg(snapshot: SnapshotAssertion) -> None:
    assert svg(PLAN) == snapshot


def test_everything_lies_inside_the_svg() -> None:
    root = ET.fromstring(svg(PLAN))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for item in root.iter():
        if item.tag.endswith("rect"):
            assert float(item.get("x", 0)) + float(item.get("width", 0)) <= width
            assert float(item.get("y", 0)) + float(item.get("height", 0)) <= height


def test_no_devices_no_bars() -> None:
    empty = replace(PLAN, devices=())
    assert bars(empty) == ()
    ET.fromstring(svg(empty))


def test_a_device_that_is_too_full_says_so() -> None:
    over = replace(CARD, terms=(*CARD.terms, _term("cache", 20)))
    assert "over" in bars(replace(PLAN, devices=(over,)))[0]
    assert "over" not in bars(PLAN)[0]


@pytest.mark.parametrize("name", ["</svg><script>", "a & b", '"quoted"', "<!--", "]]>"])
def test_names_stay_text(name: str) -> None:
    root = ET.fromstring(svg(replace(PLAN, slug=name, devices=(replace(CARD, device=name),))))
    assert name in "".join(root.itertext())
    assert not [item for item in root.iter() if item.tag.endswith("script")]


SIZES = st.integers(0, 2**42)


@given(st.lists(SIZES, max_size=6), SIZES, st.none() | SIZES, SIZES, st.integers(1, 100))
def test_a_bar_is_as_wide_as_asked(sizes: list[int], total: int, free: int | None, spare: int, cells: int) -> None:
    terms = tuple(
        Term(name=name, best_bytes=size, low_bytes=size, high_bytes=size, basis="x")
        for name, size in zip(
            ("weights", "drafter", "overhead", "cache", "logits", "prompt cache"), sizes, strict=False
        )
    )
    device = DevicePlan(
        device="x", total_bytes=total, available_bytes=total, free_bytes=free, spare_bytes=spare, terms=terms
    )
    parts = segments(device)
    assert all(part.size_bytes > 0 for part in parts)
    assert sum(part.size_bytes for part in parts) >= total
    plan = replace(PLAN, devices=(device,))
    line = bars(plan, cells=cells)[0]
    left, right = line.index("|"), line.rindex("|")
    assert right - left - 1 == cells
    ET.fromstring(svg(plan))


def test_the_standard_width() -> None:
    line = bars(PLAN)[0]
    assert line.rindex("|") - line.index("|") - 1 == BAR_CELLS
