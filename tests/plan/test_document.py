"""docs/planner.md: its tables are those that the benchmark writes now, the targets hold, and its examples work."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from redline.catalog.types import Catalog
from redline.plan.knobs import NAMES
from redline.plan.rigfile import read_rig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "planner.md").read_text(encoding="utf-8")
SPEED = re.compile(r" in \d+ ms")


def test_the_targets_hold_and_the_tables_are_the_written_ones() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "planner.py")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    written = PAGE.partition("<!-- begin: benchmarks/planner.py -->")[2].partition("<!-- end")[0]
    assert SPEED.sub(" in N ms", written.strip()) == SPEED.sub(" in N ms", done.stdout.strip())


def test_the_rig_file_of_the_page(shapes: Catalog, tmp_path: Path) -> None:
    block = next(part for part in PAGE.split("\n\n") if part.startswith("    gpus:"))
    (tmp_path / "rig.yaml").write_text(textwrap.dedent(block), encoding="utf-8")
    rig = read_rig(shapes, tmp_path / "rig.yaml")
    assert len(rig.gpus) == 3


def test_every_name_of_a_setting_is_on_the_page() -> None:
    assert all(f"`{name}`" in PAGE for name in NAMES)


def test_every_boot_is_on_the_page(shapes: Catalog) -> None:
    assert all(f"| {boot} |" in PAGE for boot in shapes.boots)
