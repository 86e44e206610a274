"""Files from a hub of our own on loopback: what is whole is kept, what breaks goes on, what is wrong is never used."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redline.artifacts.hub_access import HubAccess
from redline.artifacts.hub_listing import listing_path
from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ensure, locate, verify
from redline.artifacts.verify import RECEIPTS, FileState
from redline.catalog.types import Catalog, FileSpec
from redline.errors import DiskSpaceError, IntegrityError, MissingError, NetworkError, RefusedError
from tests.artifacts.hub_server import COMMIT, Hub, Repo, git_name, sha256
from tests.artifacts.hub_tiny import CONFIG, REPO, TOKEN, WEIGHTS, access, fetched, with_tiny


def receipts(folder: Path) -> dict[str, list[object]]:
    found: dict[str, list[object]] = json.loads((folder / RECEIPTS).read_text())
    return found


def test_a_checkpoint_comes_whole_without_what_no_engine_reads(hub: Hub, catalog: Catalog, store: Path) -> None:
    steps: list[FileProgress] = []
    folder = ensure(with_tiny(catalog), "tiny", store, steps.append, access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    assert locate(store, with_tiny(catalog).artifacts["tiny"]).verified
    assert not (store / ".parts" / "tiny").exists()
    done = [step for step in steps if step.step == "fetch"]
    assert done[-1].done_bytes == done[-1].total_bytes == len(WEIGHTS) + len(CONFIG) + len(b"# tiny")
    assert [step.done_bytes for step in done] == sorted(step.done_bytes for step in done)


def test_the_receipt_says_who_gave_each_hash(hub: Hub, catalog: Catalog, store: Path) -> None:
    catalogue = with_tiny(
        catalog,
        files=(
            FileSpec(path="config.json", size_bytes=None, sha256=None),
            FileSpec(path="model.safetensors", size_bytes=len(WEIGHTS), sha256=sha256(WEIGHTS)),
            FileSpec(path="pytorch_model.bin", size_bytes=None, sha256=None),
        ),
    )
    folder = ensure(catalogue, "tiny", store, hub=access(hub))
    kept = receipts(folder)
    assert {path: stamp[3:] for path, stamp in kept.items()} == {
        "config.json": [sha256(CONFIG), "hub-git"],
        "model.safetensors": [sha256(WEIGHTS), "catalogue"],
        "pytorch_model.bin": [sha256(b"the same, another format"), "hub-lfs"],
    }


def test_a_pinned_revision_is_the_one_that_is_asked_for(hub: Hub, catalog: Catalog, store: Path) -> None:
    ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    asked = [path for method, path, _ in hub.asked if method == "GET" and not path.startswith("store:")]
    assert asked
    assert all(COMMIT in path for path in asked)


def test_the_newest_revision_is_pinned_when_it_is_first_seen(hub: Hub, catalog: Catalog, store: Path) -> None:
    catalogue = with_tiny(catalog, revision=None)
    folder = ensure(catalogue, "tiny", store, hub=access(hub))
    assert json.loads(listing_path(folder, catalogue.artifacts["tiny"]).read_text())["commit"] == COMMIT
    hub.repos[REPO].commit = "f" * 40
    hub.repos[REPO].large["model.safetensors"] = b"another model under the same name"
    hub.asked.clear()
    assert ensure(catalogue, "tiny", store, hub=access(hub)) == folder
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.asked == []


def test_what_is_there_is_not_fetched_and_what_changed_is_fetched_again(
    hub: Hub, catalog: Catalog, store: Path
) -> None:
    (store / "tiny").mkdir(parents=True)
    (store / "tiny" / "model.safetensors").write_bytes(WEIGHTS)
    (store / "tiny" / "config.json").write_bytes(CONFIG.replace(b"T", b"t"))
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert fetched(hub, "model.safetensors") == []
    assert (folder / "config.json").read_bytes() == CONFIG
    assert [path.read_bytes() for path in (folder / "rejected").iterdir()] == [CONFIG.replace(b"T", b"t")]


def test_a_mirror_that_lists_names_only_is_asked_for_each_files_headers(
    hub: Hub, catalog: Catalog, store: Path
) -> None:
    hub.blobs_listed = False
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert receipts(folder)["model.safetensors"][3:] == [sha256(WEIGHTS), "hub-lfs"]
    assert receipts(folder)["config.json"][3:] == [sha256(CONFIG), "hub-git"]


def test_a_broken_line_goes_on_where_it_broke(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.cut_after = [3_000_000, 4_000_000]
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    asked = fetched(hub, "model.safetensors")
    starts = [int(found[1]) if (found := re.fullmatch(r"bytes=(\d+)-", text)) else 0 for text in asked]
    assert len(starts) == 3
    assert starts[0] == 0
    assert 0 < starts[1] <= 3_000_000 < starts[2] <= 7_000_000


def test_a_server_without_ranges_sends_the_file_from_its_beginning(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.cut_after, hub.ranges = [3_000_000], False
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_always_ends_early_is_given_up_and_what_came_is_kept(
    hub: Hub, catalog: Catalog, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.artifacts.hub_download._FIRST_WAIT_S", 0.01)
    hub.cut_after, hub.ranges = [2_000_000] * 50, False
    with pytest.raises(NetworkError) as caught:
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert not (store / "tiny" / "model.safetensors").exists()
    [part] = (store / ".parts" / "tiny").glob("model.safetensors.*.part")
    assert 0 < part.stat().st_size <= 2_000_000
    assert "kept" in (caught.value.next_step or "")
    assert len(hub.cut_after) > 40  # a few tries, not all


CHILD = """
import sys
from pathlib import Path
from redline.artifacts.hub_access import HubAccess
from redline.artifacts.hub import fetch_hub
from redline.catalog.types import Artifact, Hub
origin = Hub(kind="hub", repo=sys.argv[2], revision=sys.argv[3])
artifact = Artifact(id="tiny", title="Tiny model", model="m", format="safetensors", quant="int4", license="none",
                    source="test", origin=origin)
fetch_hub(artifact, origin, Path(sys.argv[4]), HubAccess(endpoint=sys.argv[1]), lambda progress: None)
"""


def test_a_killed_download_goes_on_in_the_next_process(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.hold_after = 5_000_000
    argv = [sys.executable, "-c", CHILD, hub.url, REPO, COMMIT, str(store)]
    with subprocess.Popen(argv) as child:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size >= 4_000_000 for path in (store / ".parts" / "tiny").glob("model*.part")):
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
    hub.hold_after = None
    hub.go_on.set()
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    first, second = fetched(hub, "model.safetensors")
    assert first == ""
    assert int(second.removeprefix("bytes=").removesuffix("-")) >= 4_000_000


def test_wrong_content_is_fetched_once_more(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.tampered["model.safetensors"] = [WEIGHTS[:-1] + b"?"]
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert len(fetched(hub, "model.safetensors")) == 2


def test_content_that_stays_wrong_is_never_used(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.tampered["model.safetensors"] = [WEIGHTS[:-1] + b"?"] * 2
    with pytest.raises(IntegrityError, match="twice"):
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert not (store / "tiny" / "model.safetensors").exists()


def test_a_file_that_its_publisher_replaced_is_refused_before_a_byte_is_fetched(
    hub: Hub, catalog: Catalog, store: Path
) -> None:
    known = FileSpec(path="model.safetensors", size_bytes=None, sha256="0" * 64)
    with pytest.raises(IntegrityError, match="not the file that the catalogue means"):
        ensure(with_tiny(catalog, files=(known,)), "tiny", store, hub=access(hub))
    assert fetched(hub, "model.safetensors") == []


def test_a_file_that_its_publisher_removed_is_named(hub: Hub, catalog: Catalog, store: Path) -> None:
    gone = FileSpec(path="tiny-IQ4_NL.gguf", size_bytes=None, sha256=None)
    with pytest.raises(NetworkError, match=r"tiny-IQ4_NL\.gguf .* no longer in"):
        ensure(with_tiny(catalog, files=(gone,), gguf=True), "tiny", store, hub=access(hub))


def test_a_repository_of_gguf_files_is_not_fetched_whole(hub: Hub, catalog: Catalog, store: Path) -> None:
    with pytest.raises(RefusedError, match="does not say which files"):
        ensure(with_tiny(catalog, gguf=True), "tiny", store, hub=access(hub))


def test_the_token_goes_to_the_hub_and_not_to_where_it_keeps_its_files(hub: Hub, catalog: Catalog, store: Path) -> None:
    hub.repos[REPO].private, hub.repos[REPO].let_in = True, (TOKEN,)
    ensure(with_tiny(catalog), "tiny", store, hub=access(hub, token=TOKEN, token_origin="x"))
    sent = {path.startswith("store:"): headers.get("authorization") for _, path, headers in hub.asked}
    assert sent == {False: f"Bearer {TOKEN}", True: None}
    for path in store.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes()


def test_offline_uses_what_is_there_and_says_what_is_not(hub: Hub, catalog: Catalog, store: Path) -> None:
    with pytest.raises(MissingError, match="HF_HUB_OFFLINE") as caught:
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub, offline=True))
    assert f"hf download {REPO} --revision {COMMIT}" in (caught.value.next_step or "")
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    hub.asked.clear()
    assert ensure(with_tiny(catalog), "tiny", store, hub=access(hub, offline=True)) == folder
    (folder / "config.json").unlink()
    with pytest.raises(MissingError, match=r"config\.json missing"):
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub, offline=True))
    assert hub.asked == []


def write_checkpoint(folder: Path) -> bytes:
    """Write a checkpoint that is whole by its own header, as a user would copy one."""
    header = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    data = len(header).to_bytes(8, "little") + header + b"\0\1\2\3"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(data)
    (folder / "config.json").write_bytes(CONFIG)
    return data


@pytest.mark.parametrize("offline", [True, False], ids=["offline", "unreachable"])
def test_a_folder_copied_by_hand_is_served_and_called_unverified(
    catalog: Catalog, store: Path, *, offline: bool
) -> None:
    write_checkpoint(store / "tiny")
    hub = HubAccess(endpoint="http://127.0.0.1:9", offline=offline)
    assert ensure(with_tiny(catalog), "tiny", store, hub=hub) == store / "tiny"
    state = locate(store, with_tiny(catalog).artifacts["tiny"])
    assert not state.verified
    assert dict(state.files) == {"config.json": FileState.UNHASHED, "model.safetensors": FileState.UNHASHED}
    (store / "tiny" / "model.safetensors").write_bytes(b"cut off")
    with pytest.raises(MissingError):
        ensure(with_tiny(catalog), "tiny", store, hub=hub)


def test_a_folder_copied_by_hand_is_verified_once_the_hub_can_be_asked(hub: Hub, catalog: Catalog, store: Path) -> None:
    data = write_checkpoint(store / "tiny")
    hub.repos[REPO] = Repo(small={"config.json": CONFIG}, large={"model.safetensors": data})
    ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert locate(store, with_tiny(catalog).artifacts["tiny"]).verified
    assert fetched(hub, "model.safetensors") == []


def test_a_full_disk_is_told_before_anything_is_fetched(
    hub: Hub, catalog: Catalog, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": len(WEIGHTS) + 40_000_000})
    monkeypatch.setattr("redline.artifacts.hub.shutil.disk_usage", lambda path: usage)
    with pytest.raises(DiskSpaceError, match=r"needs 60 MB .*10 MB to fetch.* 50 MB are free"):
        ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    assert fetched(hub, "model.safetensors") == []


def test_verifying_reads_everything_and_moves_nothing(hub: Hub, catalog: Catalog, store: Path) -> None:
    folder = ensure(with_tiny(catalog), "tiny", store, hub=access(hub))
    path = folder / "model.safetensors"
    before = path.stat()
    path.write_bytes(WEIGHTS[:-1] + b"?")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # a receipt alone would still call it good
    (folder / "config.json").unlink()
    state = verify(with_tiny(catalog), "tiny", store, lambda progress: None, access(hub))
    assert dict(state.files) == {
        "README.md": FileState.VERIFIED,
        "config.json": FileState.ABSENT,
        "model.safetensors": FileState.WRONG_HASH,
    }
    assert path.exists()
    assert not (folder / "config.json").exists()


def test_git_names_a_blob_as_git_does() -> None:
    assert git_name(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object, in every manual
