"""The packaged catalogue, read once."""

import pytest

from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.types import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())
