"""Write `docs/benchmarks/` from the catalogue's evidence: one page of numbers and one of changes a model.

.venv/bin/python scripts/write_benchmarks.py            # write them
.venv/bin/python scripts/write_benchmarks.py --check    # write nothing; end with 1 when a page is not the current one
"""

import sys
from pathlib import Path

from redline.ops.benchmark_pages import benchmark_pages

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def stale_pages(folder: Path) -> list[str]:
    """Return the pages in a folder that are missing, other than the catalogue's, or of no model any more."""
    pages = benchmark_pages()
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in pages.keys() | present.keys() if present.get(name) != pages.get(name))


def main(arguments: list[str], folder: Path = DOCS) -> int:
    """Write every page, or say which ones are not the current ones."""
    if arguments == ["--check"]:
        stale = stale_pages(folder)
        for name in stale:
            print(f"{folder / name} is not the current one: run scripts/write_benchmarks.py", file=sys.stderr)
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in benchmark_pages().items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
