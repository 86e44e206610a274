"""Write `docs/benchmarks/` from the catalogue's evidence: one page of numbers and one of changes a model."""

from pathlib import Path

from redline.ops.benchmark_pages import benchmark_pages

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def main() -> None:
    """Write every page."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, text in benchmark_pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(DOCS / name)


if __name__ == "__main__":
    main()
