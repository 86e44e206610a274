"""One tiny artifact in one tiny repository: what the tests of the hub share."""

from dataclasses import replace

from redline.artifacts.hub_access import HubAccess
from redline.catalog.types import Artifact, Catalog, FileSpec
from redline.catalog.types import Hub as HubOrigin
from tests.artifacts.hub_server import COMMIT, Hub, Repo

REPO = "acme/tiny"
CONFIG = b'{"architectures": ["Tiny"]}'
WEIGHTS = bytes(range(256)) * 40_000  # 10 MB: several of the client's blocks
TOKEN = "hf_" + "s3cret" * 6


def tiny_repo() -> Repo:
    """Return the repository: a checkpoint, and what comes with one."""
    return Repo(
        small={"config.json": CONFIG, ".gitattributes": b"* lfs", "README.md": b"# tiny"},
        large={"model.safetensors": WEIGHTS, "pytorch_model.bin": b"the same, another format"},
    )


def with_tiny(
    catalog: Catalog, files: tuple[FileSpec, ...] = (), revision: str | None = COMMIT, *, gguf: bool = False
) -> Catalog:
    """Return a catalogue with one more artifact, `tiny`, that lies in the repository."""
    artifact = Artifact(
        id="tiny",
        title="Tiny model",
        model="smollm2-135m",
        format="gguf" if gguf else "safetensors",
        quant="int4",
        license="Apache-2.0",
        source="made by the tests",
        origin=HubOrigin(kind="hub", repo=REPO, revision=revision),
        files=files,
    )
    return replace(catalog, artifacts={**catalog.artifacts, "tiny": artifact})


def access(hub: Hub, **changes: object) -> HubAccess:
    """Return how the hub of a test is reached."""
    return replace(HubAccess(endpoint=hub.url), **changes)  # type: ignore[arg-type]


def fetched(hub: Hub, path: str) -> list[str]:
    """Return the `Range` of each request for a file's content."""
    return [headers.get("range", "") for headers in hub.requests(f"store:/{REPO}/{path}")]
