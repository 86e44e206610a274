"""The committed pages of numbers are those of the catalogue, and hold both seeds' numbers beside their sources."""

import subprocess
import sys
from pathlib import Path

import pytest

from redline.ops.benchmark_pages import benchmark_pages

SCRIPT = Path(__file__).parents[2] / "scripts" / "write_benchmarks.py"


def run_script(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_the_committed_pages_are_the_current_ones() -> None:
    done = run_script("--check")
    assert done.returncode == 0, done.stderr


def test_a_page_that_is_not_the_current_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    copied = tmp_path / "scripts" / SCRIPT.name
    copied.write_text(SCRIPT.read_text())
    assert subprocess.run([sys.executable, copied], capture_output=True, check=False).returncode == 0
    pages = tmp_path / "docs" / "benchmarks"
    assert {path.name for path in pages.iterdir()} == benchmark_pages().keys()
    (pages / "qwen3.8-27b.md").write_text("edited by hand")
    (pages / "of-no-model.md").write_text("left over")
    done = subprocess.run([sys.executable, copied, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [line.split(" ")[0].rpartition("/")[2] for line in done.stderr.splitlines()] == [
        "of-no-model.md",
        "qwen3.8-27b.md",
    ]


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
