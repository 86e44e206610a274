"""What tests of launching share: a test that fails leaves no server behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.launch.server import running_servers
from redline.launch.stop import end_orphan, find_orphans, stop


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """End what a test started and did not end itself."""
    yield
    for folder, record in running_servers(tmp_path):
        stop(folder, record, now=True)
    for orphan in find_orphans(tmp_path):
        end_orphan(orphan)
