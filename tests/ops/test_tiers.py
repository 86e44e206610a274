"""The list of tiers and its filters, the grid, and renderings, as operations."""

from pathlib import Path

import pytest

from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.ops.grid import map_model
from redline.ops.render import render_tier
from redline.ops.tiers import TierRow, list_tiers, speed_of
from redline.rig.types import Rig
from redline.settings import Layers

RIG = Rig(cpu_model="cpu", cpus=2, memory_total_bytes=2**34, memory_available_bytes=2**34, kernel="6.8", wsl=False)
ULTRA = "vllm/qwen38-27b-dual-ultrafast"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())


def listed(catalog: Catalog, folder: Path, *words: str) -> tuple[TierRow, ...]:
    return list_tiers(catalog, RIG, folder, words)


def test_all_tiers_are_listed_in_order(catalog: Catalog, tmp_path: Path) -> None:
    rows = listed(catalog, tmp_path)
    assert [row.slug for row in rows] == list(catalog.tiers)
    assert sum(row.model == "qwen3.8-27b" for row in rows) == 23


@pytest.mark.parametrize(
    ("words", "tails"),
    [
        (("3.8", "super", ">=200k", "gpu:2"), {"dual-superfast"}),
        (("3.8", "fidelity", "ultra"), {"dual-ultramax", "multi4-ultramax", "multi8-ultramax"}),
        (("3.8", "nvfp4", "single"), {"single-nvfp4"}),
        (("incubating",), {"dual-dflash15-fast", "single-iq4xs", "dual-q8kxl"}),
        (("3.8", "<100k"), {"dual-ultramax", "single-nvfp4"}),
        (("dflash2", "dual", "=204_800"), {"dual-ultrafast"}),
        (("ultrafast", "gpus:8"), {"multi8-ultrafast"}),
    ],
)
def test_words_all_hold(catalog: Catalog, tmp_path: Path, words: tuple[str, ...], tails: set[str]) -> None:
    found = {row.slug.partition("/")[2].removeprefix("qwen38-27b-") for row in listed(catalog, tmp_path, *words)}
    assert found == tails


def test_fits_is_what_the_planner_knows_to_fit(catalog: Catalog, tmp_path: Path) -> None:
    assert {row.topology for row in listed(catalog, tmp_path, "fits")} == {"cpu"}


def test_statuses_cover_every_row(catalog: Catalog, tmp_path: Path) -> None:
    words = ("production", "caveats", "experimental", "incubating", "projected")
    assert sum(len(listed(catalog, tmp_path, word)) for word in words) == len(catalog.tiers)


@pytest.mark.parametrize("word", [">=", ">=lots", "<200q"])
def test_a_comparison_that_is_none_is_told(catalog: Catalog, tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match="compares nothing"):
        listed(catalog, tmp_path, word)


def test_files_of_a_tier_are_seen(catalog: Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "qwen3.8-27b-autoround-int4"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert {row.slug: row.files for row in listed(catalog, tmp_path, "ultrafast", "dual")} == {ULTRA: "partial"}
    assert {row.files for row in listed(catalog, tmp_path, "max")} == {"absent"}


def test_numbers_of_other_engines_are_shown_as_such_and_blanks_stay_blank(catalog: Catalog) -> None:
    speed = speed_of(catalog, ULTRA)
    assert speed is not None
    assert (speed.narrative_tok_s, speed.code_tok_s, speed.engine_version) == (128, 231, "0.27.1")
    assert (speed.patched, speed.counts) == (True, False)
    half = speed_of(catalog, "vllm/qwen38-27b-multi4-superfast")
    assert half is not None
    assert (half.narrative_tok_s, half.code_tok_s) == (None, 190)
    assert speed_of(catalog, "vllm/qwen38-27b-multi8-ultramax") is None


def test_a_pair_is_of_one_set_of_circumstances(catalog: Catalog) -> None:
    speed = speed_of(catalog, "vllm/qwen38-27b-dual-dflash15-fast")
    assert speed is not None
    assert (speed.narrative_tok_s, speed.code_tok_s) == (93.69, 163.82)


def test_grid_is_series_by_depth(catalog: Catalog) -> None:
    grids = {(grid.engine, grid.topology): grid for grid in map_model(catalog, "qwen3.8-27b")}
    dual = grids["vllm", "dual"]
    assert dual.depths == ("base", "super", "ultra")
    names = {
        row.series: {depth: [cell.name for cell in cells] for depth, cells in row.cells.items()} for row in dual.rows
    }
    assert names["speed"] == {"base": ["fast"], "super": ["superfast"], "ultra": ["ultrafast", "dflash15-fast"]}
    assert names["fidelity"] == {"base": ["max"], "super": ["supermax"], "ultra": ["ultramax"]}
    wide = grids["vllm", "multi8"]
    assert all(cell.context_projected for row in wide.rows for cells in row.cells.values() for cell in cells)


def test_every_tier_stands_in_the_grid_once(catalog: Catalog) -> None:
    for model in catalog.models:
        cells = [
            cell.slug
            for grid in map_model(catalog, model)
            for row in grid.rows
            for group in row.cells.values()
            for cell in group
        ]
        assert sorted(cells) == sorted(slug for slug, key in catalog.tiers.items() if key.model == model)


def test_model_by_any_of_its_names(catalog: Catalog) -> None:
    assert map_model(catalog, "Qwen38-27B") == map_model(catalog, "qwen3.8-27b")
    with pytest.raises(UsageError, match="no model"):
        map_model(catalog, "gpt")


def test_every_slug_renders_as_a_command(catalog: Catalog, tmp_path: Path) -> None:
    for slug in catalog.tiers:
        made = render_tier(catalog, resolve(catalog, slug, Layers()), RIG, tmp_path, "argv")
        assert made.argv
        assert made.text.endswith("\n")


def test_rendering_says_what_is_undeclared(catalog: Catalog, tmp_path: Path) -> None:
    tier = resolve(catalog, "vllm/qwen38-27b-dual-dflash15-fast", Layers())
    findings = {item.rule_id: item for item in render_tier(catalog, tier, RIG, tmp_path, "argv").findings}
    assert "qwen3.8-27b-autoround-fast, qwen3.8-27b-dflash2-b16" in findings["undeclared"].message


def test_what_comes_with_redline_is_no_download(catalog: Catalog, tmp_path: Path) -> None:
    rows = {row.slug: row for row in list_tiers(catalog, RIG, tmp_path)}
    plain, drafting = (rows[f"llamacpp/smollm2-135m-cpu-{name}"] for name in ("fast", "ultrafast"))
    assert (plain.files, drafting.files) == ("absent", "absent")
    assert drafting.download_bytes == plain.download_bytes
