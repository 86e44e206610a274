"""Pages in a real browser: no complaint, nothing beyond the edge, narrow and wide, light and dark; working filters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report.chromium import BROWSER, Tab, chromium
from tests.report.records import full_record, on_boots

from redline.catalog.types import Catalog
from redline.ops.site import build_site
from redline.report.build import build_report
from redline.report.html import render_html
from redline.settings import load_settings

pytestmark = [pytest.mark.real, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]
SIZES = [(360, 800), (1440, 900)]
MADE_AT = "2026-11-29T20:00:00+00:00"
_OVER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_SMALL = """[...document.querySelectorAll('main *')].filter(e => e.children.length == 0 && e.textContent.trim()
  && e.getClientRects().length && !e.closest('svg') && parseFloat(getComputedStyle(e).fontSize) < 11).length"""
_SHOWN = "[...document.querySelectorAll('tr.tier')].filter(e => e.getClientRects().length).map(e => e.className)"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, catalog: Catalog) -> dict[str, Path]:
    """One tier with every section, two tiers, and the matrix."""
    folder = tmp_path_factory.mktemp("pages")
    reports = {"one": [full_record()], "two": [*on_boots(3), *on_boots(3, slug="llamacpp/smollm2-135m-cpu-fast")]}
    for name, records in reports.items():
        model = build_report(records, made_at=MADE_AT, redacted=True)
        (folder / f"{name}.html").write_text(render_html(model))
    settings = load_settings(environ={"HOME": str(folder)}, working_dir=folder)
    list(build_site(catalog, settings, folder / "site"))
    return {"one": folder / "one.html", "two": folder / "two.html", "site": folder / "site" / "index.html"}


@pytest.mark.parametrize("name", ["one", "two", "site"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_page_is_shown_whole_and_without_complaint(
    tab: Tab, pages: dict[str, Path], name: str, scheme: str, size: tuple[int, int]
) -> None:
    tab.open(pages[name], *size, scheme)
    assert tab.ask(_OVER) <= 0
    assert tab.ask(_SMALL) == 0
    ground = tab.ask("getComputedStyle(document.body).backgroundColor")
    lightness = sum(int(part) for part in ground[4:-1].split(",")[:3])
    assert (lightness > 384) is (scheme == "light")
    assert tab.complaints == []


def test_the_first_wide_screen_holds_the_six_answers(tab: Tab, pages: dict[str, Path]) -> None:
    tab.open(pages["one"], 1440, 900)
    below = "[...document.querySelectorAll('[data-answer] > p')].map(e => e.getBoundingClientRect().bottom)"
    bottoms = tab.ask(below)
    assert len(bottoms) == 6
    assert max(bottoms) <= 900


def test_filters_leave_the_rows_they_name_and_reset(tab: Tab, pages: dict[str, Path]) -> None:
    tab.open(pages["site"], 1440, 900)
    every = tab.ask(_SHOWN)
    choices = tab.ask("[...document.querySelectorAll('.filters input[id]')].map(e => e.id)")
    assert len(choices) > 10
    for choice in choices:
        tab.ask(f"document.getElementById('{choice}').click()")
        shown = tab.ask(_SHOWN)
        assert shown == [row for row in every if f"is-{choice}" in row.split()]
        assert 0 < len(shown) <= len(every)
        tab.ask("document.querySelector('.filters button[type=reset]').click()")
        assert tab.ask(_SHOWN) == every
