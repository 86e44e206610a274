"""What lies on disk for a tier, on folders made here."""

import json
from pathlib import Path
from typing import Any

import pytest

from redline.artifacts.disk import Presence, look_at, look_at_tier, tier_artifacts
from redline.catalog.load import PACKAGED, read_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.settings import Layers
from tests.artifacts.test_headers import gguf_bytes, safetensors_bytes

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
INT4 = "qwen3.8-27b-autoround-int4"
DRAFT = "qwen3.8-27b-dflash2-w4a16"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog(tuple(sorted(PACKAGED.rglob("*.yaml"))), ())


def make_checkpoint(folder: Path, shards: int = 3, config: dict[str, Any] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"layers-{number}.safetensors" for number in range(shards)]
    for name in names:
        (folder / name).write_bytes(safetensors_bytes({"w": 64}))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": dict(enumerate(names))}))
    (folder / "config.json").write_text(json.dumps(config or {"architectures": ["X"]}))


def test_artifacts_of_a_tier_are_weights_drafter_and_projector(catalog: Catalog) -> None:
    def ids(slug: str, **environ: str) -> list[str]:
        return [artifact.id for artifact in tier_artifacts(catalog, resolve(catalog, slug, Layers(environ=environ)))]

    assert ids(ULTRA) == [INT4, DRAFT]
    assert ids(ULTRA, SPEC_N="0") == [INT4]
    assert ids("vllm/qwen38-27b-dual-fast") == [INT4]
    assert ids("llamacpp/qwen38-27b-single-iq4xs") == ["qwen3.8-27b-ud-iq4_xs", "qwen3.8-27b-mmproj-f16"]


def test_whole_checkpoint(catalog: Catalog, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / INT4)
    assert look_at(tmp_path, catalog.artifacts[INT4]).presence is Presence.PRESENT


def test_nothing_there(catalog: Catalog, tmp_path: Path) -> None:
    found = look_at(tmp_path, catalog.artifacts[INT4])
    assert (found.presence, found.missing) == (Presence.ABSENT, ("config.json", "model.safetensors"))


def test_missing_shard_is_named(catalog: Catalog, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / INT4)
    (tmp_path / INT4 / "layers-1.safetensors").unlink()
    found = look_at(tmp_path, catalog.artifacts[INT4])
    assert (found.presence, found.missing, found.damaged) == (Presence.PARTIAL, ("layers-1.safetensors",), ())


def test_shard_cut_off_is_named(catalog: Catalog, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / INT4)
    path = tmp_path / INT4 / "layers-2.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    found = look_at(tmp_path, catalog.artifacts[INT4])
    assert (found.presence, found.damaged) == (Presence.PARTIAL, ("layers-2.safetensors",))


def test_a_quick_look_reads_no_headers(catalog: Catalog, tmp_path: Path) -> None:
    make_checkpoint(tmp_path / INT4)
    path = tmp_path / INT4 / "layers-2.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    assert look_at(tmp_path, catalog.artifacts[INT4], headers=False).presence is Presence.PRESENT
    path.write_bytes(b"")
    assert look_at(tmp_path, catalog.artifacts[INT4], headers=False).damaged == ("layers-2.safetensors",)


def test_link_out_of_the_models_folder_is_named(catalog: Catalog, tmp_path: Path) -> None:
    models, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    make_checkpoint(models / INT4)
    elsewhere.mkdir()
    path = models / INT4 / "layers-0.safetensors"
    path.rename(elsewhere / "layers-0.safetensors")
    path.symlink_to(elsewhere / "layers-0.safetensors")
    found = look_at(models, catalog.artifacts[INT4])
    assert (found.presence, found.outside) == (Presence.PRESENT, ("layers-0.safetensors",))


def test_gguf_in_the_shared_layout(catalog: Catalog, tmp_path: Path) -> None:
    artifact = catalog.artifacts["qwen3.8-27b-ud-iq4_xs"]
    folder = tmp_path / "qwen3.8-27b-gguf" / "unsloth-iq4xs"
    folder.mkdir(parents=True)
    path = folder / artifact.files[0].path
    path.write_bytes(b"")
    assert look_at(tmp_path, artifact).damaged == (artifact.files[0].path,)
    path.write_bytes(gguf_bytes({"general.architecture": "qwen35"}))
    assert look_at(tmp_path, artifact).presence is Presence.PRESENT


@pytest.mark.parametrize(
    ("config", "block", "context"),
    [
        ({"dflash_config": {"block_size": 16}, "max_position_embeddings": 40960}, 16, 40960),
        ({"block_size": 8}, 8, None),
        ({"dflash_config": {"block_size": "eight"}}, None, None),
        ({"dflash_config": None}, None, None),
    ],
)
def test_drafter_speaks_for_itself(
    catalog: Catalog, tmp_path: Path, config: dict[str, Any], block: int | None, context: int | None
) -> None:
    make_checkpoint(tmp_path / DRAFT, 1, config)
    draft = look_at_tier(catalog, resolve(catalog, ULTRA, Layers()), tmp_path).draft
    assert draft is not None
    assert (draft.block_size, draft.context_max) == (block, context)


def test_drafter_that_is_not_there_says_nothing(catalog: Catalog, tmp_path: Path) -> None:
    assert look_at_tier(catalog, resolve(catalog, ULTRA, Layers()), tmp_path).draft is None
