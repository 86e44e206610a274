"""A file that comes with redline: put beside the others, verified, offline."""

from dataclasses import replace
from pathlib import Path

import pytest

from redline.artifacts.store import ensure, locate
from redline.catalog.types import Catalog, FileSpec, Packaged
from redline.errors import IntegrityError, MissingError

DRAFTER = "smollm2-135m-dflash2"


def changed(catalog: Catalog, **changes: object) -> Catalog:
    artifact = replace(catalog.artifacts[DRAFTER], **changes)  # type: ignore[arg-type]
    return replace(catalog, artifacts={**catalog.artifacts, DRAFTER: artifact})


def test_the_drafter_is_there_and_is_the_one_the_catalogue_names(catalog: Catalog, tmp_path: Path) -> None:
    folder = ensure(catalog, DRAFTER, tmp_path)
    spec = catalog.artifacts[DRAFTER].files[0]
    assert (folder / spec.path).stat().st_size == spec.size_bytes
    assert spec.size_bytes is not None
    assert spec.size_bytes <= 12 * 2**20
    assert locate(tmp_path, catalog.artifacts[DRAFTER]).verified


def test_another_files_hash_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    spec = catalog.artifacts[DRAFTER].files[0]
    wrong = changed(catalog, files=(FileSpec(path=spec.path, size_bytes=spec.size_bytes, sha256="0" * 64),))
    with pytest.raises(IntegrityError, match="comes with redline"):
        ensure(wrong, DRAFTER, tmp_path)


def test_a_file_that_is_not_in_the_package(catalog: Catalog, tmp_path: Path) -> None:
    origin = Packaged(kind="packaged", member="artifacts/data/nothing.gguf")
    with pytest.raises(MissingError, match="is not there"):
        ensure(changed(catalog, origin=origin), DRAFTER, tmp_path)
