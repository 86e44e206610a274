"""The published pages of numbers, from the packaged catalogue alone: what a user has imported is that user's."""

from collections.abc import Mapping

from redline.catalog.load import load_catalog
from redline.report.evidence_table import benchmark_page, changelog_page


def benchmark_pages() -> Mapping[str, str]:
    """Return file name -> text of `docs/benchmarks/`: models with evidence only."""
    catalog = load_catalog()
    measured = {catalog.tiers[row.slug].model for row in catalog.evidence.values() if row.slug in catalog.tiers}
    pages: dict[str, str] = {}
    for model_id in catalog.models:
        if model_id in measured:
            pages[f"{model_id}.md"] = benchmark_page(catalog, model_id)
            pages[f"{model_id}-changes.md"] = changelog_page(catalog, model_id)
    return pages
