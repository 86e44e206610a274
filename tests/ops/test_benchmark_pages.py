"""The committed pages of numbers are those of the catalogue, and hold both seeds' numbers beside their sources."""

from pathlib import Path

import pytest

from redline.ops.benchmark_pages import benchmark_pages

DOCS = Path(__file__).parents[2] / "docs" / "benchmarks"


def test_the_committed_pages_are_the_current_ones() -> None:
    for name, text in benchmark_pages().items():
        assert (DOCS / name).read_text() == text, "run .venv/bin/python scripts/write_benchmarks.py"


@pytest.mark.parametrize(
    ("slug", "numbers", "source"),
    [
        ("vllm/qwen38-27b-dual-ultrafast", "128 / 231", "tier hierarchy post"),
        ("vllm/qwen38-27b-dual-superfast", "78.0 / 141", "tier hierarchy post"),
        ("vllm/qwen38-27b-dual-fast", "73.0 / 100", "tier hierarchy post"),
        ("vllm/qwen38-27b-dual-max", "69.0 / 87.0", "tier hierarchy post"),
        ("vllm/qwen38-27b-dual-supermax", "68.0 / 130", "tier hierarchy post"),
        ("vllm/qwen38-27b-dual-ultramax", "90.0 / 172", "tier hierarchy post"),
        ("vllm/qwen38-27b-multi4-superfast", "— / 190", "1064"),
        ("vllm/qwen38-27b-dual-dflash15-fast", "93.7 / 164", "DFLASH15 fast profile"),
    ],
)
def test_the_seeds_numbers_stand_beside_their_source(slug: str, numbers: str, source: str) -> None:
    page = benchmark_pages()["qwen3.8-27b.md"]
    lines = [line for line in page.splitlines() if line.startswith(f"| {slug} |")]
    assert any(numbers in line and source in line for line in lines), lines


def test_what_does_not_count_is_told_from_what_does() -> None:
    page = benchmark_pages()["qwen3.8-27b.md"]
    assert "projected" in page
    assert "count towards a status here" in page
