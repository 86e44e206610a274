"""Published numbers become evidence beside their source; what cannot be, or is known, is refused with its reason."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from redline.catalog.evidence import EvidenceKind, EvidenceSet
from redline.catalog.load import load_catalog
from redline.catalog.standing import standing
from redline.catalog.types import Catalog
from redline.cli.evidence import evidence
from redline.errors import AccessError, UsageError
from redline.ops.published import import_published, judge_published, read_published
from redline.report.evidence_table import benchmark_page, changelog_page

POSTS = Path(__file__).parent / "data" / "published.yaml"
TODAY = date(2026, 11, 30)


@pytest.fixture
def bare(catalog: Catalog) -> Catalog:
    """The catalogue before anybody measured anything."""
    return replace(catalog, evidence={})


@pytest.fixture
def posts() -> tuple[EvidenceSet, ...]:
    return read_published(POSTS)


def refusals(catalog: Catalog, one: EvidenceSet) -> set[str]:
    return {doubt.rule for doubt in judge_published(catalog, one, TODAY) if doubt.refuses}


def test_the_numbers_of_both_posts_are_taken_in_and_shown_beside_their_source(
    bare: Catalog, posts: tuple[EvidenceSet, ...], tmp_path: Path
) -> None:
    found = import_published(bare, posts, tmp_path, today=TODAY)
    assert not found.refused, found.doubts
    after = load_catalog(tmp_path)
    page = [line for line in benchmark_page(after, "qwen3.8-27b").splitlines() if "| reported" in line]

    def line(slug: str, source: str) -> str:
        return next(text for text in page if f"| vllm/qwen38-27b-{slug} |" in text and source in text)

    pairs = {"fast": "73.0 / 100", "superfast": "78.0 / 141", "ultrafast": "128 / 231"}
    pairs |= {"max": "69.0 / 87.0", "supermax": "68.0 / 130", "ultramax": "90.0 / 172"}
    for name, numbers in pairs.items():
        assert numbers in line(f"dual-{name}", "post on the tier hierarchy")
    assert "— / 190" in line("multi4-superfast", "1064")
    assert "93.7 / 164" in line("dual-dflash15-fast", "DFLASH15")
    assert "244K" in line("dual-dflash15-fast", "DFLASH15")
    assert "quality pass1 131 of 150" in changelog_page(after, "qwen3.8-27b")


def test_they_count_towards_no_status(bare: Catalog, posts: tuple[EvidenceSet, ...], tmp_path: Path) -> None:
    pinned = tuple(replace(one, engine_version=bare.engines["vllm"].pin, patches=(), setup="") for one in posts)
    assert not import_published(bare, pinned, tmp_path, today=TODAY).refused
    assert standing(load_catalog(tmp_path), "vllm/qwen38-27b-dual-ultrafast").earned is None


def test_what_is_known_is_not_taken_again(
    catalog: Catalog, bare: Catalog, posts: tuple[EvidenceSet, ...], tmp_path: Path
) -> None:
    found = import_published(catalog, posts, tmp_path, today=TODAY)
    assert found.refused
    assert {doubt.rule for doubt in found.doubts} == {"duplicate"}
    assert list(tmp_path.iterdir()) == []
    import_published(bare, posts, tmp_path, today=TODAY)
    assert "duplicate" in refusals(load_catalog(tmp_path), posts[0])


def number(one: EvidenceSet, **changes: Any) -> EvidenceSet:
    return replace(one, numbers=(replace(one.numbers[0], **changes),))


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("id", {"id": "../x"}),
        ("kind", {"kind": EvidenceKind.MEASURED}),
        ("source", {"source": " "}),
        ("date", {"date": "2099-01-01"}),
        ("date", {"date": "soon"}),
        ("engine", {"engine": "llamacpp"}),
    ],
)
def test_a_set_that_cannot_be_is_refused(
    bare: Catalog, posts: tuple[EvidenceSet, ...], rule: str, changes: dict[str, Any]
) -> None:
    assert rule in refusals(bare, replace(posts[0], **changes))
    assert refusals(bare, posts[0]) == set()


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("tier", {"slug": "vllm/unheard-of"}),
        ("metric", {"metric": "happiness"}),
        ("value", {"value": float("nan")}),
        ("value", {"value": -1.0}),
        ("value", {"value": 1e300}),
        ("interval", {"low": 80.0, "high": 90.0}),
        ("bandwidth", {"value": 5000.0}),
    ],
)
def test_a_number_that_cannot_be_is_refused(
    bare: Catalog, posts: tuple[EvidenceSet, ...], rule: str, changes: dict[str, Any]
) -> None:
    assert rule in refusals(bare, number(posts[0], **changes))


def test_a_rig_that_nobody_knows_is_a_doubt_only(bare: Catalog, posts: tuple[EvidenceSet, ...]) -> None:
    doubts = list(judge_published(bare, number(replace(posts[0], rig="2x Unheard 9000")), TODAY))
    assert [(doubt.rule, doubt.refuses) for doubt in doubts] == [("bandwidth", False)]


def test_hostile_words_become_plain_ones(bare: Catalog, posts: tuple[EvidenceSet, ...], tmp_path: Path) -> None:
    evil = "\x1b[2J<script>\n  - id: x #" + "x" * 5000
    found = import_published(bare, [replace(posts[0], source=evil, setup=evil, rig=evil)], tmp_path, today=TODAY)
    assert "\x1b" not in found.sets[0].source + found.sets[0].setup + found.sets[0].rig
    assert len(found.sets[0].source) < 400
    assert "<script>" not in benchmark_page(load_catalog(tmp_path), "qwen3.8-27b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "a: [",
        "evidence_sets: 3",
        "evidence_sets: []",
        "models: []\nx: 1",
        "a: &a [*a]",
        "a: &a [1]\nb: [*a, *a]",
        "[" * 5000,
    ],
)
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_published(path)
    assert len(caught.value.message) < 400


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(AccessError):
        read_published(tmp_path / "none.yaml")


def test_a_file_with_rules_in_it_is_refused(tmp_path: Path) -> None:
    """A post must not bring tiers, rules or engines with it."""
    path = tmp_path / "x.yaml"
    path.write_text(POSTS.read_text() + "hardware:\n  - {id: h, title: H, bandwidth_gb_s: 1, memory_gib: 1}\n")
    with pytest.raises(UsageError):
        read_published(path)


def test_as_a_user_types_it(tmp_path: Path) -> None:
    arguments = ["import", str(POSTS), "--into", str(tmp_path)]
    found = CliRunner().invoke(evidence, arguments, standalone_mode=False, catch_exceptions=False)
    assert found.return_value == 1
    assert "refused  duplicate: vllm/qwen38-27b-dual-fast decode_narrative 73 is known already" in found.output
    path = tmp_path / "one.yaml"
    path.write_text(POSTS.read_text().split("  - id: post-multi4")[0].replace("2026-08-21", "2026-09-02"))
    for arguments in (["import", str(path), "--dry-run"], ["import", str(path), "--into", str(tmp_path / "c")]):
        found = CliRunner().invoke(evidence, arguments, standalone_mode=False, catch_exceptions=False)
        assert found.return_value == 0, found.output
        assert "post-hierarchy: 18 numbers, reported" in found.output
