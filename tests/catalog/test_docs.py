"""The example of docs/catalog.md does what the page says."""

import textwrap
from pathlib import Path

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.guard.rules import GuardContext, run_guards
from redline.plan.dispatch import plan_tier
from redline.rig.types import Rig
from redline.settings import Layers

PAGE = Path(__file__).parents[2] / "docs" / "catalog.md"
SLUG = "vllm/qwen38-27b-dual-dflash15-fast"
RIG = Rig(cpu_model="cpu", cpus=2, memory_total_bytes=2**34, memory_available_bytes=2**34, kernel="6.8", wsl=False)


def example() -> str:
    """The indented block that declares artifacts."""
    blocks = PAGE.read_text(encoding="utf-8").split("\n\n")
    return textwrap.dedent(next(block for block in blocks if block.startswith("    artifacts:")))


def said(folder: Path) -> set[str]:
    catalog = load_catalog(folder)
    tier = resolve(catalog, SLUG, Layers())
    return {
        finding.rule_id
        for finding in run_guards(GuardContext(catalog=catalog, tier=tier, rig=RIG, fit=plan_tier(catalog, tier, RIG)))
    }


def test_declaring_the_two_artifacts_lifts_that_refusal(own_folder: Path) -> None:
    assert "undeclared" in said(own_folder)
    (own_folder / "mine.yaml").write_text(example(), encoding="utf-8")
    assert "undeclared" not in said(own_folder)
