"""The static site: every tier, filters that are style rules, and nothing that could run or load."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.report.records import check, sample

from redline.catalog.types import Catalog
from redline.errors import RefusedError
from redline.ops.site import build_site
from redline.record.run import create_run
from redline.report.site import FACETS, Site, SiteTier, page_name, render_site
from redline.settings import Settings, load_settings
from redline.workload.prompts import PromptClass

FAST = "llamacpp/smollm2-135m-cpu-fast"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(
        environ={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}, working_dir=tmp_path
    )


def record(settings: Settings, **fields: object) -> None:
    conditions = {"url": "http://127.0.0.1:1", "slug": FAST, "server_id": "s", "engine": "llamacpp"} | fields
    with create_run(settings.runs_dir, "bench", **conditions) as run:  # type: ignore[arg-type]
        run.append(check("chat.basic"))
        for index in range(3):
            run.append(sample(PromptClass.PROSE, index, 80.0 + index))
        run.finish("complete", 0, "done")


def test_every_tier_is_there_and_measured_ones_link_to_their_report(
    catalog: Catalog, settings: Settings, tmp_path: Path
) -> None:
    record(settings)
    record(settings, slug=None, url="http://127.0.0.1:9/<script>", engine=None, server_id=None)
    pages = [Path(page.path).name for page in build_site(catalog, settings, tmp_path / "site")]
    assert pages[-1] == "index.html"
    text = (tmp_path / "site" / "index.html").read_text()
    assert all(slug in text for slug in catalog.tiers)
    links = set(re.findall(r'href="([^"]+)"', text))
    assert links == {f"reports/{page_name(FAST)}", f"reports/{page_name('http://127.0.0.1:9/<script>')}"}
    assert all((tmp_path / "site" / link).is_file() for link in links)
    assert "prose 81.0 tok/s" in text
    assert "128 / 231" in text


def test_the_page_runs_and_loads_nothing(catalog: Catalog, settings: Settings, tmp_path: Path) -> None:
    list(build_site(catalog, settings, tmp_path / "site"))
    text = (tmp_path / "site" / "index.html").read_text()
    assert "<script" not in text
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert "url(" not in text


def test_a_folder_of_other_things_is_left_alone_and_an_earlier_site_is_renewed(
    catalog: Catalog, settings: Settings, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "letter.txt").write_text("x")
    with pytest.raises(RefusedError):
        list(build_site(catalog, settings, precious))
    list(build_site(catalog, settings, tmp_path / "site"))
    list(build_site(catalog, settings, tmp_path / "site"))


def tier(slug: str, **fields: Any) -> SiteTier:
    values: dict[str, Any] = {
        "name": slug,
        "model": "M",
        "engine": "e",
        "topology": "t",
        "series": "s",
        "depth": "base",
    } | fields
    rest = {"weights": "w", "drafter": "d", "context": "8K", "status": "production", "status_note": ""}
    return SiteTier(slug=slug, **(rest | values))


def visible(text: str, chosen: set[str]) -> list[str]:
    """Return the rows that the page's own style rules leave, with some buttons chosen."""
    rules = re.findall(r"body:has\(#([\w-]+):checked\) tr\.tier:not\(\.is-([\w-]+)\)", text)
    assert rules
    assert all(button == mark for button, mark in rules)
    rows = re.findall(r'<tr class="tier ([^"]*)"><td class="lead">(?:<a [^>]*>)?([^<]+)', text)
    return [name for marks, name in rows if all(f"is-{button}" in marks.split() for button in chosen)]


def test_filters_leave_what_they_say() -> None:
    tiers = (
        tier("a", engine="vllm"),
        tier("b", engine="llamacpp", series="fp8"),
        tier("c", engine="vllm", series="fp8"),
    )
    text = render_site(Site(made_at="2026-11-29T00:00:00+00:00", redline_version="0", tiers=tiers))
    buttons = dict(re.findall(r'id="([\w-]+)"> (\w+) <small>', text))
    by_label = {label: button for button, label in buttons.items()}
    assert visible(text, set()) == ["a", "b", "c"]
    assert visible(text, {by_label["vllm"]}) == ["a", "c"]
    assert visible(text, {by_label["vllm"], by_label["fp8"]}) == ["c"]
    assert all(f'name="{facet}"' in text for facet in FACETS)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)


def test_hostile_values_reach_neither_markup_nor_rules() -> None:
    evil = "</style><script>alert(1)</script>\" onload='x' } body { display: none }"
    names = ("name", "engine", "series", "status", "status_note", "weights", "drafter", "topology", "model")
    text = render_site(
        Site(
            made_at=evil,
            redline_version=evil,
            tiers=(tier(evil, **dict.fromkeys(names, evil)),),
        )
    )
    assert "script" not in Tags(text).found
    style = text.split("<style>")[1].split("</style>")[0]
    assert "display: none }" not in style.replace("{ display: none; }", "")


def test_page_names_are_plain() -> None:
    assert page_name("llamacpp/smollm2-135m-cpu-fast") == "llamacpp-smollm2-135m-cpu-fast.html"
    assert re.fullmatch(r"[a-z0-9.-]+", page_name("../../etc/passwd <x>"))
    assert not page_name("../x").startswith(".")
