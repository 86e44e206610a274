"""What the verdict on degeneration says of healthy and broken texts, as the table in docs/degeneration.md.

    python benchmarks/degeneration.py [--texts 50] [--write]

Seeded, a few seconds. The real code is that of the Python which runs this.
"""

import argparse
import sysconfig
from collections.abc import Callable
from pathlib import Path

from redline.checks.measures import TextVerdict, judge_text
from redline.workload.broken import Breakage, Monotony, broken_text, monotonous_text
from redline.workload.corpus import Corpus, Genre

DOCUMENT = Path(__file__).parents[1] / "docs" / "degeneration.md"
MODULES = (
    "argparse",
    "ast",
    "calendar",
    "csv",
    "heapq",
    "decimal",
    "opcode",
    "stat",
    "statistics",
    "textwrap",
    "token",
    "tarfile",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=50)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [
        "| text | judged | degenerate | repeated | distinct | deflates | least |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, texts in groups(options.texts):
        lines.append(row(name, texts))
    table = "\n".join(lines)
    print(table)
    if options.write:
        begin, end = "<!-- specimens -->\n", "<!-- /specimens -->"
        before, rest = DOCUMENT.read_text(encoding="utf-8").split(begin, 1)
        DOCUMENT.write_text(f"{before}{begin}{table}\n{end}{rest.split(end, 1)[1]}", encoding="utf-8")


def groups(count: int) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    found += [
        (f"generated {genre.value}", [Corpus(f"good/{seed}", (genre,)).words(400) for seed in range(count)])
        for genre in Genre
    ]
    found += [
        (f"monotonous: {kind.value}", [monotonous_text(kind, seed) for seed in range(count)]) for kind in Monotony
    ]
    library = Path(sysconfig.get_path("stdlib"))
    sources = [(library / f"{module}.py").read_text(encoding="utf-8") for module in MODULES]
    parts = [text[start : start + 4000] for text in sources for start in range(0, len(text), 4000)]
    found.append(("real Python code, 4,000 characters each", parts[: 4 * count]))
    found += [(f"broken: {kind.value}", [broken_text(kind, seed) for seed in range(count)]) for kind in Breakage]
    return found


def row(name: str, texts: list[str]) -> str:
    found = [judge_text(text) for text in texts]

    def span(read: Callable[[int], float]) -> str:
        values = [read(index) for index in range(len(found))]
        return f"{min(values):.2f} to {max(values):.2f}"

    bad = sum(judgement.verdict is TextVerdict.DEGENERATE for judgement in found)
    cells = [
        name,
        str(len(found)),
        str(bad),
        span(lambda index: found[index].measures.repeated),
        span(lambda index: found[index].measures.distinct),
        span(lambda index: found[index].measures.compression),
        span(lambda index: found[index].measures.least_compression),
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
