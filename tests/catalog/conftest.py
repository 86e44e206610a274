"""The packaged catalogue, read once."""

from pathlib import Path

import pytest

from redline.catalog import load
from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.types import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's catalogue folder, with a cache of its own."""
    load._load.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "catalog"
    folder.mkdir()
    return folder
