"""Figures are drawn inside their canvas at both widths, and what is larger is drawn further."""

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from tests.report.records import failed_record, full_record

from redline.checks.check import CheckStatus
from redline.report import curves, figures, grids
from redline.report.build import build_report
from redline.report.figures import NARROW_PX, WIDE_PX, RateRow
from redline.report.model import BootFact, MemoryPoint, NeedleCell, StreamLevel, Subject
from redline.report.svg import text_width
from redline.stats.interval import Estimate, estimate_mean

Draw = Callable[[Subject, float], str]

GPU_MEMORY = [
    MemoryPoint(at_s=float(n), phase="soak", resident_bytes=1, gpu_bytes=(20 << 30, (21 << 30) + n)) for n in range(4)
]
LEVELS = [
    StreamLevel(
        streams=streams,
        aggregate_tok_s=estimate_mean([40.0 * streams**0.5, 44.0 * streams**0.5]),
        per_stream_tok_s=estimate_mean([40.0 / streams**0.5, 42.0 / streams**0.5]),
        ttft_s=None,
        errors=0,
    )
    for streams in (1, 2, 4, 8)
]
RATIOS = [
    grids.RatioRow("decode tok/s, prose", 1.4, 1.2, 1.6, "1.40 faster", "good"),
    grids.RatioRow("x" * 90, 0.5, None, None, "0.50", "muted"),
]


@pytest.fixture(scope="module")
def subject() -> Subject:
    return build_report([full_record()], made_at="2026-11-29T20:00:00+00:00", redacted=True).subjects[0]


def rows(subject: Subject) -> list[RateRow]:
    return [
        RateRow(row.prompt_class, n, tuple(p.decode_tok_s for p in row.samples if p.decode_tok_s), row.decode_tok_s)
        for n, row in enumerate(subject.speeds)
    ]


def drawn(name: str) -> Draw:
    def draw(subject: Subject, width: float) -> str:
        drafting = subject.drafting
        assert drafting is not None
        match name:
            case "distribution":
                return figures.distribution(rows(subject), width)
            case "context":
                return curves.against_context(subject.context, width)
            case "memory":
                return figures.memory_over_time(subject.memory, width)
            case "gpu memory":
                return figures.memory_over_time(GPU_MEMORY, width)
            case "positions":
                return figures.acceptance_by_position(drafting.by_position, width)
            case "over time":
                return figures.acceptance_over_time(drafting.over_time, width)
            case "stages":
                return figures.stage_timeline(subject.boots, width)
            case "streams":
                return curves.side_by_side(LEVELS, width)
            case "needles":
                return grids.needle_grid(subject.needles, width)
            case _:
                return grids.ratios(RATIOS, width, margin=0.05)

    return draw


NAMES = [
    "distribution",
    "context",
    "memory",
    "gpu memory",
    "positions",
    "over time",
    "stages",
    "streams",
    "needles",
    "ratios",
]


@pytest.mark.parametrize("width", [WIDE_PX, NARROW_PX])
@pytest.mark.parametrize("name", NAMES)
def test_everything_stays_on_the_canvas(subject: Subject, name: str, width: float) -> None:
    root = ET.fromstring(drawn(name)(subject, width))
    height = float(root.attrib["height"])
    assert float(root.attrib["width"]) == width
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if kind == "text":
            room = text_width(element.text or "")
            anchor = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.attrib["text-anchor"]]
            left = float(element.attrib["x"]) - room * anchor
            assert left >= -8, element.text
            assert left + room <= width + 8, element.text
            assert 0 <= float(element.attrib["y"]) <= height
        elif kind == "circle":
            assert 0 <= float(element.attrib["cx"]) <= width
            assert 0 <= float(element.attrib["cy"]) <= height
        elif kind == "rect":
            assert float(element.attrib["x"]) >= -0.1
            assert float(element.attrib["x"]) + float(element.attrib["width"]) <= width + 0.1
            assert float(element.attrib["y"]) + float(element.attrib["height"]) <= height + 0.1


def test_faster_is_drawn_further_right() -> None:
    svg = figures.distribution([RateRow("a", 0, (10.0, 20.0, 30.0), estimate_mean([10.0, 20.0, 30.0]))], WIDE_PX)
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    assert places == sorted(places)
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_an_interval_below_zero_is_cut_at_the_axis() -> None:
    row = RateRow("a", 0, (1.0, 9.0), Estimate(n=2, mean=5.0, median=5.0, low=-45.0, high=55.0))
    root = ET.fromstring(figures.distribution([row], WIDE_PX))
    assert all(float(line.attrib["x1"]) >= 4.0 for line in root.iter() if line.tag.endswith("line"))


def test_a_class_without_a_rate_says_so() -> None:
    assert "no rate" in figures.distribution([RateRow("a", 0, (), None)], WIDE_PX)


def test_the_grid_shows_what_was_not_asked() -> None:
    cells = [
        NeedleCell(context_tokens=1024, position_percent=10.0, status=CheckStatus.PASS),
        NeedleCell(context_tokens=8192, position_percent=50.0, status=CheckStatus.FAIL),
    ]
    svg = grids.needle_grid(cells, WIDE_PX)
    assert svg.count("not asked") == 2
    assert "✓" in svg
    assert "✗" in svg


def test_a_failed_boot_is_marked(subject: Subject) -> None:
    boots = build_report([failed_record()], made_at="2026-11-29T20:00:00+00:00", redacted=True).subjects[0].boots
    assert "✗" in figures.stage_timeline(boots, WIDE_PX)
    assert "✗" not in figures.stage_timeline(subject.boots, WIDE_PX)


def test_boots_without_stages_are_left_out() -> None:
    boot = BootFact(server_id="x", slug="a/b", when="2026-11-29T20:00:00+00:00", state="ready", ready_s=1.0)
    assert "a/b" not in figures.stage_timeline([boot], WIDE_PX)
